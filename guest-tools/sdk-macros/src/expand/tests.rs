//! Each way in which a function is no tool, with the fix in its message.

use super::*;

#[track_caller]
fn refused(options: &str, item: &str, fix: &str) {
    let (options, item) = (options.parse().unwrap(), item.parse().unwrap());
    let message = tool(options, item).expect_err(fix).to_string();
    assert!(message.contains(fix), "{message}");
}

#[test]
fn what_cannot_be_a_tool_names_the_fix() {
    refused("", "/// D.\nstruct Greet;", "goes on a free function");
    refused("", "fn a() -> Result<String, E> { x }", "write a doc comment");
    refused("", "/// D.\nasync fn a() -> Result<String, E> { x }", "make it a plain `fn`");
    refused("", "/// D.\nfn a<T>(t: T) -> Result<String, E> { x }", "take the generic parameters away");
    refused("", "/// D.\nunsafe fn a() -> Result<String, E> { x }", "make it a safe `fn`");
    refused("", "/// D.\nextern \"C\" fn a() -> Result<String, E> { x }", "make it a plain `fn`");
    refused("", "/// D.\nfn a(&self) -> Result<String, E> { x }", "make it a free function");
    refused("", "/// D.\nfn a(name: &str) -> Result<String, E> { x }", "take `String` for `&str`");
    refused("", "/// D.\nfn a(context: &mut Context) -> Result<String, E> { x }", "is `&Context`");
    refused("", "/// D.\nfn a(of: impl Copy) -> Result<String, E> { x }", "name one instead of `impl ..`");
    refused("", "/// D.\nfn a((x, y): (u8, u8)) -> Result<String, E> { x }", "write `name: Type`");
    refused("", "/// D.\nfn a() {}", "returns `Result<T, ToolError>`");
    refused("", "/// D.\nfn a() -> String { x }", "returns `Result<T, ToolError>`");
    refused("", "/// D.\nfn a() -> Result<(), E> { x }", "answer with a `String`");
    refused("", "/// D.\nfn Greet() -> Result<String, E> { x }", "`#[tool(name = \"..\")]`");
    refused("", "/// D.\nfn r#type() -> Result<String, E> { x }", "`#[tool(name = \"..\")]`");
    refused("name = \"\"", "/// D.\nfn a() -> Result<String, E> { x }", "begin with a-z");
    refused("effect = \"read\"", "/// D.\nfn a() -> Result<String, E> { x }", "`effects = \"read\"`");
    refused(
        "effects = \"pure\"",
        "/// D.\nfn a() -> Result<String, E> { x }",
        "write `read`, `write` or `destructive`",
    );
}

#[test]
fn comments_and_options_of_parameters_move_to_the_fields() {
    let item = "/// D.\nfn a(#[doc = \"N.\"] #[serde(default)] name: String, c: &motor_sdk::Context) -> Result<String, E> { x }";
    let expanded = tool(TokenStream::new(), item.parse().unwrap()).unwrap().to_string();
    let (function, rest) = expanded.split_once("struct a").unwrap();
    assert!(!function.contains("N.") && !function.contains("default"), "{function}");
    assert!(
        rest.contains("N.") && rest.contains("default") && rest.contains("a (_arguments . name , _context)"),
        "{rest}"
    );
}
