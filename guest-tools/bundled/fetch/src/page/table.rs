//! Tables as Markdown without padding: a cell costs its own length, however wide its neighbours are.

use std::rc::Rc;

use htmd::Element;
use htmd::element_handler::{HandlerResult, Handlers};
use markup5ever_rcdom::Node;

use super::{children, tag};

/// Columns that are shown; more is a grid of something else.
const MAX_COLUMNS: usize = 100;

/// Writes a table with headings as one; one without only places things on a page, and its cells are blocks.
pub fn write(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let rows = rows(element.node);
    let has_heading = rows.iter().any(|row| children(row).iter().any(|cell| tag(cell) == "th"));
    if !has_heading {
        let content = handlers.walk_children(element.node).content;
        return Some(format!("\n\n{}\n\n", content.trim_matches('\n')).into());
    }
    let mut table = String::from("\n\n");
    for caption in children(element.node).iter().filter(|child| tag(child) == "caption") {
        table.push_str(&line(&handlers.walk_children(caption).content));
        table.push_str("\n\n");
    }
    let mut columns = 0;
    for row in rows {
        let cells: Vec<Rc<Node>> = children(&row).into_iter().filter(|cell| matches!(tag(cell), "td" | "th")).collect();
        if cells.is_empty() {
            continue;
        }
        table.push('|');
        for cell in cells.iter().take(MAX_COLUMNS) {
            table.push(' ');
            table.push_str(&line(&handlers.walk_children(cell).content));
            table.push_str(" |");
        }
        table.push('\n');
        if columns == 0 {
            columns = cells.len().min(MAX_COLUMNS);
            table.push('|');
            table.push_str(&" --- |".repeat(columns));
            table.push('\n');
        }
    }
    table.push('\n');
    Some(table.into())
}

/// The rows of a table, not those of tables inside it.
fn rows(table: &Node) -> Vec<Rc<Node>> {
    let mut rows = Vec::new();
    for child in children(table) {
        match tag(&child) {
            "tr" => rows.push(child),
            "thead" | "tbody" | "tfoot" => rows.extend(children(&child).into_iter().filter(|row| tag(row) == "tr")),
            _ => {}
        }
    }
    rows
}

/// Text that fits one cell.
fn line(content: &str) -> String {
    content.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
