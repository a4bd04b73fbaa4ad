//! The owner, who signs in on the page and answers there, without scripts.

use std::collections::BTreeMap;

use regex::Regex;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, StatusCode};
use tests::block_on;

use super::World;

/// A browser in which the owner has signed in.
pub(super) struct Owner<'a> {
    world: &'a World,
    client: Client,
    cookie: String,
}

impl<'a> Owner<'a> {
    pub(super) fn sign_in(world: &'a World) -> Self {
        let client = Client::builder().redirect(Policy::none()).build().unwrap();
        let mut owner = Self { world, client, cookie: String::new() };
        let (status, _, cookie) = owner.post("/sign-in", &[("token", &world.motor.owner_token()), ("next", "/")]);
        assert_eq!(status, StatusCode::SEE_OTHER);
        owner.cookie = cookie;
        owner
    }

    /// Answers the question of a run.
    pub(super) fn answer(&self, run: &str, answer: &str) {
        self.submit(run, "answer", &[("answer", answer)]);
    }

    /// Approves exactly the actions that the page shows.
    pub(super) fn approve(&self, run: &str) {
        self.submit(run, "approval", &[("grant", "yes")]);
    }

    /// Fills in the form of a run's page and submits it, as a browser does.
    fn submit(&self, run: &str, form: &str, filled: &[(&str, &str)]) {
        let request = self.client.get(format!("{}/runs/{run}", self.world.address)).header("cookie", &self.cookie);
        let (status, page, _) = send(request.header("accept", "text/html"));
        assert_eq!(status, StatusCode::OK, "{page}");
        let action = format!("/runs/{run}/{form}");
        let (_, form) = page.split_once(&format!("action=\"{action}\"")).unwrap_or_else(|| panic!("no form: {page}"));
        let (form, _) = form.split_once("</form>").unwrap();
        // The fields with a value of their own: hidden ones, and the choice that is checked.
        let field =
            r#"<input type="(?:hidden" name="(\w+)" value="([^"]*)"|radio" name="(\w+)" value="([^"]*)" checked)"#;
        let field = Regex::new(field).unwrap();
        let group = |found: &regex::Captures<'_>, one: usize, other: usize| {
            found.get(one).or_else(|| found.get(other)).unwrap().as_str().to_owned()
        };
        let fields = field.captures_iter(form).map(|found| (group(&found, 1, 3), group(&found, 2, 4)));
        let fields: Vec<(String, String)> = fields.collect();
        let fields = fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let fields: Vec<(&str, &str)> = fields.chain(filled.iter().copied()).collect();
        let (status, page, _) = self.post(&action, &fields);
        assert_eq!(status, StatusCode::SEE_OTHER, "{fields:?}: {page}");
    }

    fn post(&self, path: &str, fields: &[(&str, &str)]) -> (StatusCode, String, String) {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = self.client.post(format!("{}{path}", self.world.address)).header("cookie", &self.cookie);
        let request = request.header("origin", &self.world.address).header("accept", "text/html");
        let (status, page, headers) =
            send(request.header("content-type", "application/x-www-form-urlencoded").body(body));
        let cookie = headers.get("set-cookie").and_then(|cookie| cookie.split(';').next()).unwrap_or_default();
        (status, page, cookie.to_owned())
    }
}

fn send(request: RequestBuilder) -> (StatusCode, String, BTreeMap<String, String>) {
    block_on(async {
        let response = request.send().await.unwrap();
        let headers = response.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned()));
        let (status, headers) = (response.status(), headers.collect());
        (status, response.text().await.unwrap(), headers)
    })
}
