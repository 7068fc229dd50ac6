//! The web view of an instance: its page, and the data that the page asks for.

mod assets;
mod element;
mod graph;
mod history;
mod live;
mod manual;
mod view;

pub(crate) use assets::asset;
pub(crate) use element::{ElementPage, read_values, role};
pub(crate) use graph::GraphDescription;
pub(crate) use history::HistoryColumns;
pub(crate) use live::LiveRates;
pub(crate) use manual::manual_page;
pub(crate) use view::WebView;
