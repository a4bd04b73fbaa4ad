//! The fields of a form.

use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use base::{Refusal, RefusalCode};
use serde::de::DeserializeOwned;

use super::super::ApiState;
use super::super::reply::{ErrorReply, RawBody};

/// The fields of a submitted form, in order. A field that is not there is empty.
#[derive(Debug)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    pub(super) fn of_query(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// The text of a field, without space around it.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.trim())
    }

    /// The text of a field, if it is not empty.
    pub(super) fn given(&self, name: &str) -> Option<String> {
        Some(self.text(name).to_owned()).filter(|text| !text.is_empty())
    }

    /// The texts of all fields of this name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// Whether a box is ticked.
    pub(super) fn is_set(&self, name: &str) -> bool {
        !self.text(name).is_empty()
    }

    /// The words of a field, between spaces and commas.
    pub(super) fn words(&self, name: &str) -> Vec<String> {
        let words = self.text(name).split(|c: char| c.is_whitespace() || c == ',');
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    /// The value of a field.
    ///
    /// # Errors
    /// If the text is not one.
    pub(super) fn parsed<T: DeserializeOwned>(&self, name: &str) -> Result<T, Refusal> {
        value(name, self.text(name))
    }
}

/// The value that the text of a field stands for.
///
/// # Errors
/// If it stands for none.
pub(super) fn value<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, Refusal> {
    serde_json::from_value(text.into()).map_err(|_| {
        // Not quoted: any field could hold a secret.
        Refusal::new(RefusalCode::InvalidRequest, format!("the field `{name}` does not hold a valid value"))
    })
}

impl FromRequest<ApiState> for Form {
    type Rejection = ErrorReply;

    async fn from_request(request: Request, api: &ApiState) -> Result<Self, ErrorReply> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")
        {
            return Err(ErrorReply::rejected(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body is not a form"));
        }
        let RawBody(bytes) = RawBody::from_request(request, api).await?;
        Ok(Self(form_urlencoded::parse(&bytes).into_owned().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_they_were_written() {
        let form = Form::of_query("task=+say%20it+&domains=a.example,%20b.example%0Ac.example&empty=&on=1&on=2");
        assert_eq!(form.text("task"), "say it");
        assert_eq!(form.words("domains"), ["a.example", "b.example", "c.example"]);
        assert_eq!((form.given("empty"), form.given("absent")), (None, None));
        assert!(form.is_set("on") && !form.is_set("off"));
        assert!(form.parsed::<base::AgentName>("empty").is_err());
        assert_eq!(form.parsed::<String>("on").unwrap(), "1");
    }
}
