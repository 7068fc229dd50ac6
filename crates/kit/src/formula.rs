//! Formulas of one variable, in the notation of TinyExpr: `10 + min(90, 10 * x)`.
//!
//! As there, `^` goes from left to right, a sign binds stronger than it, and a function of one number
//! needs no parentheses: `2^3^2` is 64, `-2^2` is 4, `fac 5` is 120.

use std::iter::Peekable;
use std::str::Chars;

/// A formula of `x`.
#[derive(Clone, Debug)]
pub struct Formula(Node);

/// A function of one number.
type Function = fn(f64) -> f64;
/// A function of two numbers.
type FunctionOfTwo = fn(f64, f64) -> f64;

#[derive(Clone, Debug)]
enum Node {
    Number(f64),
    X,
    Call1(Function, Box<Node>),
    Call2(FunctionOfTwo, Box<[Node; 2]>),
}

/// Formulas may be nested so deep.
const MAX_DEPTH: u32 = 100;

const CONSTANTS: [(&str, f64); 2] = [("pi", std::f64::consts::PI), ("e", std::f64::consts::E)];

const FUNCTIONS: [(&str, Function); 19] = [
    ("abs", f64::abs),
    ("acos", f64::acos),
    ("asin", f64::asin),
    ("atan", f64::atan),
    ("ceil", f64::ceil),
    ("cos", f64::cos),
    ("cosh", f64::cosh),
    ("exp", f64::exp),
    ("fac", factorial),
    ("floor", f64::floor),
    ("ln", f64::ln),
    ("log", f64::log10),
    ("log10", f64::log10),
    ("sin", f64::sin),
    ("sinh", f64::sinh),
    ("sqrt", f64::sqrt),
    ("squarewave", |x| if x.sin() < 0.0 { -1.0 } else { 1.0 }),
    ("tan", f64::tan),
    ("tanh", f64::tanh),
];

const FUNCTIONS_OF_TWO: [(&str, FunctionOfTwo); 6] = [
    ("atan2", f64::atan2),
    ("max", f64::max),
    ("min", f64::min),
    ("ncr", |n, r| factorial(n) / (factorial(r) * factorial(n - r))),
    ("npr", |n, r| factorial(n) / factorial(n - r)),
    ("pow", f64::powf),
];

/// The factorial of a whole number; infinite beyond the largest number.
fn factorial(n: f64) -> f64 {
    match n {
        n if n.is_nan() || n < 0.0 => f64::NAN,
        n if n > 170.0 => f64::INFINITY,
        n => (1..=n as u32).map(f64::from).product(),
    }
}

impl Formula {
    /// Reads a formula.
    ///
    /// # Errors
    /// The part of the text that makes no sense, in words.
    pub fn parse(text: &str) -> Result<Formula, String> {
        let mut parser = Parser { rest: text.chars().peekable(), depth: 0 };
        let node = parser.sum()?;
        match parser.peek() {
            None => Ok(Formula(node)),
            Some(c) => Err(format!("`{c}` is unexpected")),
        }
    }

    /// The value where `x` is the number of seconds in `nanos`, counted in milliseconds.
    pub fn after(&self, nanos: u64) -> f64 {
        self.value((nanos / 1_000_000) as f64 / 1000.0)
    }

    /// The value at `x`.
    pub fn value(&self, x: f64) -> f64 {
        self.0.value(x)
    }
}

impl Node {
    fn value(&self, x: f64) -> f64 {
        match self {
            Node::Number(number) => *number,
            Node::X => x,
            Node::Call1(function, of) => function(of.value(x)),
            Node::Call2(function, of) => function(of[0].value(x), of[1].value(x)),
        }
    }

    fn of_two(function: FunctionOfTwo, first: Node, second: Node) -> Node {
        Node::Call2(function, Box::new([first, second]))
    }
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    depth: u32,
}

/// Operators of one rank, from left to right.
type Operators = [(char, FunctionOfTwo)];

impl Parser<'_> {
    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        while self.rest.next_if(|c| c.is_whitespace()).is_some() {}
        self.rest.peek().copied()
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        match self.peek() {
            Some(c) if c == wanted => {
                self.rest.next();
                Ok(())
            }
            Some(c) => Err(format!("`{c}` stands in place of `{wanted}`")),
            None => Err(format!("`{wanted}` is missing at the end")),
        }
    }

    fn row(
        &mut self,
        operators: &Operators,
        operand: fn(&mut Self) -> Result<Node, String>,
    ) -> Result<Node, String> {
        let mut node = operand(self)?;
        while let Some(c) = self.peek()
            && let Some((_, function)) = operators.iter().find(|(name, _)| *name == c)
        {
            self.rest.next();
            node = Node::of_two(*function, node, operand(self)?);
        }
        Ok(node)
    }

    fn sum(&mut self) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} parentheses are nested"));
        }
        let sum = self.row(&[('+', |a, b| a + b), ('-', |a, b| a - b)], Self::product);
        self.depth -= 1;
        sum
    }

    fn product(&mut self) -> Result<Node, String> {
        let operators: &Operators =
            &[('*', |a, b| a * b), ('/', |a, b| a / b), ('%', |a, b| a % b)];
        self.row(operators, Self::power)
    }

    /// A sign belongs to the number behind it, also before `^`.
    fn power(&mut self) -> Result<Node, String> {
        self.row(&[('^', f64::powf)], Self::signed)
    }

    fn signed(&mut self) -> Result<Node, String> {
        let mut is_negative = false;
        while let Some(sign) = self.peek().filter(|c| matches!(c, '+' | '-')) {
            self.rest.next();
            is_negative ^= sign == '-';
        }
        let node = self.operand()?;
        Ok(if is_negative { Node::Call1(|x| -x, Box::new(node)) } else { node })
    }

    fn operand(&mut self) -> Result<Node, String> {
        match self.peek() {
            Some('(') => {
                self.rest.next();
                let node = self.sum()?;
                self.expect(')')?;
                Ok(node)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_ascii_alphabetic() => self.named(),
            Some(c) => Err(format!("`{c}` is unexpected")),
            None => Err("a number is missing at the end".to_owned()),
        }
    }

    fn number(&mut self) -> Result<Node, String> {
        let mut text = String::new();
        while let Some(c) = self.rest.next_if(|c| c.is_ascii_digit() || *c == '.') {
            text.push(c);
        }
        if let Some(e) = self.rest.next_if(|c| matches!(c, 'e' | 'E')) {
            text.push(e);
            text.extend(self.rest.next_if(|c| matches!(c, '+' | '-')));
            while let Some(c) = self.rest.next_if(char::is_ascii_digit) {
                text.push(c);
            }
        }
        text.parse().map(Node::Number).map_err(|_| format!("`{text}` is no number"))
    }

    fn named(&mut self) -> Result<Node, String> {
        let mut name = String::new();
        while let Some(c) = self.rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(c);
        }
        if name == "x" {
            return Ok(Node::X);
        }
        if let Some((_, value)) = CONSTANTS.iter().find(|(it, _)| *it == name) {
            return Ok(Node::Number(*value));
        }
        if let Some((_, function)) = FUNCTIONS.iter().find(|(it, _)| *it == name) {
            self.depth += 1;
            let argument = if self.depth > MAX_DEPTH { self.sum() } else { self.signed() };
            self.depth -= 1;
            return Ok(Node::Call1(*function, Box::new(argument?)));
        }
        if let Some((_, function)) = FUNCTIONS_OF_TWO.iter().find(|(it, _)| *it == name) {
            self.expect('(')?;
            let first = self.sum()?;
            self.expect(',')?;
            let second = self.sum()?;
            self.expect(')')?;
            return Ok(Node::of_two(*function, first, second));
        }
        Err(format!("`{name}` is no function, and not x"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_have_values() {
        let near = |text: &str, x: f64, want: f64| {
            let value = Formula::parse(text).unwrap().value(x);
            assert!((value - want).abs() < 1e-9, "{text} is {value}");
        };
        near("10 + min(90,10*x)", 0.0, 10.0);
        near("10 + min(90,10*x)", 4.5, 55.0);
        near("10 + min(90,10*x)", 100.0, 100.0);
        near("1 - 2 - 3 * 4 / 8 % 1", 0.0, -1.5);
        // Powers go from left to right, and a sign binds stronger.
        near("2^3^2", 0.0, 64.0);
        near("-2^2", 0.0, 4.0);
        near("sin(-pi/2 + (x/10)^2.5)", 10.0, (1.0 - std::f64::consts::FRAC_PI_2).sin());
        near("squarewave(x) + squarewave(-x)", 1.0, 0.0);
        near("fac 5 + ncr(5, 2) + npr(5, 2)", 0.0, 150.0);
        near("1.5e1 + .5 + 2E-1", 0.0, 15.7);
        near("max(log 100, ln(e)) - --1", 0.0, 1.0);
    }

    #[test]
    fn what_is_no_formula_is_said() {
        for (text, error) in [
            ("", "a number is missing at the end"),
            ("1 +", "a number is missing at the end"),
            ("(1", "`)` is missing at the end"),
            ("min(1)", "`)` stands in place of `,`"),
            ("1 2", "`2` is unexpected"),
            ("$", "`$` is unexpected"),
            ("1.2.3", "`1.2.3` is no number"),
            ("y", "`y` is no function, and not x"),
        ] {
            assert_eq!(Formula::parse(text).unwrap_err(), error, "{text}");
        }
        let deep = |depth| "(".repeat(depth) + "x" + &")".repeat(depth);
        assert!(Formula::parse(&deep(90)).is_ok());
        for text in [deep(100_000), "sin ".repeat(100_000) + "x"] {
            assert!(Formula::parse(&text).unwrap_err().contains("nested"));
        }
    }
}
