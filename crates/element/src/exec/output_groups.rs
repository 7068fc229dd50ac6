//! Outputs of an element that lead to the same input.

/// Outputs of an element in groups: those of a group lead to the same input, so that packets for all of
/// them can leave together, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputGroups {
    /// By output: the first of its group. Fates that are no outputs stand for themselves.
    first: [u8; 256],
    /// Number of outputs, from 0 on, that are in the first group.
    alike: u8,
}

impl OutputGroups {
    /// The groups of outputs that lead to these inputs; `None` if no two lead to the same. An open output
    /// is alone in its group.
    pub fn of<T: PartialEq>(inputs: &[Option<T>]) -> Option<Box<OutputGroups>> {
        let mut first = std::array::from_fn(|fate| fate as u8);
        let mut has_common_inputs = false;
        for (output, input) in inputs.iter().enumerate().filter(|(_, input)| input.is_some()) {
            let place = inputs.iter().position(|other| other == input).unwrap_or(output);
            has_common_inputs |= place < output;
            if let Some(entry) = first.get_mut(output) {
                *entry = place as u8;
            }
        }
        let alike = first.iter().take_while(|&&group| group == 0).count() as u8;
        has_common_inputs.then(|| Box::new(OutputGroups { first, alike }))
    }

    /// Replaces each output by the first of its group.
    #[inline]
    pub fn apply(&self, fates: &mut [u8]) {
        if fates.iter().fold(0, |most, &fate| fate.max(most)) < self.alike {
            return fates.fill(0);
        }
        fates.iter_mut().for_each(|fate| *fate = self.first[usize::from(*fate)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fate::DROP;

    #[test]
    fn outputs_to_the_same_input_are_one_and_open_ones_are_alone() {
        assert_eq!(OutputGroups::of(&[Some(3), None, Some(4), None]), None);
        let groups = OutputGroups::of(&[Some(3), None, Some(4), Some(3), None, Some(4)]);
        let mut fates = [5, 4, 3, 2, 1, 0, 200, DROP];
        groups.expect("there are two groups").apply(&mut fates);
        assert_eq!(fates, [2, 4, 0, 2, 1, 0, 200, DROP]);
        let groups = OutputGroups::of(&[Some(3), Some(3), Some(3), None, Some(3)]);
        let groups = groups.expect("there is a group");
        for (mut fates, expected) in [
            ([2, 1, 0, 2], [0; 4]),
            ([2, 3, 0, 4], [0, 3, 0, 0]),
            ([DROP, 1, 2, 0], [DROP, 0, 0, 0]),
        ] {
            groups.apply(&mut fates);
            assert_eq!(fates, expected);
        }
    }
}
