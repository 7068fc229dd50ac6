//! An element of the page that the browser shows.

use serde_json::{Value, json};

use super::{Browser, poll, text};
use crate::error::{Error, Result};

/// Name of an element's ID in answers, from section 12 of the WebDriver recommendation.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// WebDriver's errors of elements that the page still moves, covers or enables.
const NOT_READY: &[&str] = &["element not interactable", "element click intercepted"];

/// An element of the page; it is stale once the page has removed it.
#[derive(Clone)]
pub struct PageElement<'b> {
    browser: &'b Browser,
    selector: String,
    id: String,
}

impl PageElement<'_> {
    /// Reads the reference to an element in an answer; `selector` is its name in messages.
    pub(super) fn new<'b>(
        browser: &'b Browser,
        selector: &str,
        reference: &Value,
    ) -> Option<PageElement<'b>> {
        let id = reference[ELEMENT].as_str()?.to_owned();
        Some(PageElement { browser, selector: selector.to_owned(), id })
    }

    /// Clicks on the element; waits until it is visible and uncovered.
    pub fn click(&self) -> Result<()> {
        self.when_ready("click on", "click", &json!({}))
    }

    /// Types text, and [keys](super::keys), into the element; waits until it takes keys.
    pub fn send_keys(&self, keys: &str) -> Result<()> {
        self.when_ready("type into", "value", &json!({ "text": keys }))
    }

    /// Removes the text of an input field.
    pub fn clear(&self) -> Result<()> {
        self.when_ready("clear", "clear", &json!({}))
    }

    /// Returns the visible text.
    pub fn text(&self) -> Result<String> {
        self.read("text").map(text)
    }

    /// Returns an attribute, if the element has it.
    pub fn attribute(&self, name: &str) -> Result<Option<String>> {
        let value = self.read(&format!("attribute/{name}"))?;
        Ok(if value.is_null() { None } else { Some(text(value)) })
    }

    /// Returns the computed value of a CSS property.
    pub fn css(&self, property: &str) -> Result<String> {
        self.read(&format!("css/{property}")).map(text)
    }

    /// Whether the element is visible.
    pub fn is_displayed(&self) -> Result<bool> {
        self.read("displayed").map(|value| value == json!(true))
    }

    fn read(&self, property: &str) -> Result<Value> {
        let step = format!("read the {property} of `{}`", self.selector);
        self.browser.session.get(&step, &format!("element/{}/{property}", self.id))
    }

    fn when_ready(&self, verb: &str, command: &str, body: &Value) -> Result<()> {
        let step = format!("{verb} `{}`", self.selector);
        poll(&step, || {
            let path = format!("element/{}/{command}", self.id);
            match self.browser.session.post(&step, &path, body) {
                Ok(_) => Ok(Ok(())),
                Err(Error::Browser { message, .. })
                    if NOT_READY.iter().any(|kind| message.starts_with(kind)) =>
                {
                    Ok(Err(message))
                }
                Err(error) => Err(error),
            }
        })
    }
}
