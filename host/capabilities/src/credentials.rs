//! `motor:host/credentials`: computing with secrets that the guest never sees (SPEC VAULT-5).
//!
//! Only the credentials granted to the run exist here. A signature takes a millisecond of the host's time and hardly
//! any fuel, so each call yields to the deadline before it computes.

use std::sync::Arc;

use base::text::Foreign;
use bindings::credentials::{CredentialError, Host, SignatureAlgorithm};
use vault::compute::{self, Algorithm, ComputeError};
use vault::{GrantedCredential, RunSecrets};
use wasmtime::component::HasData;

/// The credentials of one call. Empty by default.
#[derive(Default)]
pub struct CredentialsCtx {
    secrets: Option<Arc<RunSecrets>>,
}

impl CredentialsCtx {
    /// The credentials of a run, if it has any.
    #[must_use]
    pub fn new(secrets: Option<Arc<RunSecrets>>) -> Self {
        Self { secrets }
    }

    /// Looks up a credential for computing with it, and records that.
    fn take(&self, name: &str) -> Result<&GrantedCredential, CredentialError> {
        let granted = self.get(name)?;
        if let Some(secrets) = &self.secrets {
            secrets.note_computed();
        }
        Ok(granted)
    }

    fn get(&self, name: &str) -> Result<&GrantedCredential, CredentialError> {
        // The name is echoed to the guest, cut to the maximum length of a name.
        self.secrets.as_ref().and_then(|secrets| secrets.get(name)).ok_or_else(|| {
            let shown = Foreign(name).escaped(64);
            CredentialError::Missing(format!("no credential `{shown}` is granted to this run; ask the user to set it"))
        })
    }
}

/// The view that implements the host trait.
pub struct CredentialsView<'a>(pub &'a mut CredentialsCtx);

/// Marks stores that have a [`CredentialsCtx`].
pub struct HasCredentials;

impl HasData for HasCredentials {
    type Data<'a> = CredentialsView<'a>;
}

impl Host for CredentialsView<'_> {
    fn exists(&mut self, name: String) -> wasmtime::Result<bool> {
        Ok(self.0.get(&name).is_ok())
    }

    async fn hmac_sha256(&mut self, name: String, data: Vec<u8>) -> wasmtime::Result<Result<Vec<u8>, CredentialError>> {
        tokio::task::yield_now().await;
        Ok(self.0.take(&name).map(|granted| compute::hmac_sha256(granted, &data).to_vec()))
    }

    async fn sign(
        &mut self,
        name: String,
        algorithm: SignatureAlgorithm,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<Vec<u8>, CredentialError>> {
        tokio::task::yield_now().await;
        let algorithm = match algorithm {
            SignatureAlgorithm::Ed25519 => Algorithm::Ed25519,
            SignatureAlgorithm::EcdsaP256Sha256 => Algorithm::EcdsaP256Sha256,
            SignatureAlgorithm::RsaPkcs1Sha256 => Algorithm::RsaPkcs1Sha256,
        };
        Ok(self.0.take(&name).and_then(|granted| compute::sign(granted, algorithm, &data).map_err(refused)))
    }

    fn reveal(&mut self, name: String) -> wasmtime::Result<Result<String, CredentialError>> {
        let revealed = self.0.take(&name).and_then(|granted| compute::reveal(granted).map_err(refused));
        Ok(revealed.map(|secret| secret.expose().clone()))
    }
}

fn refused(error: ComputeError) -> CredentialError {
    let message = error.to_string();
    match error {
        ComputeError::Denied { .. } => CredentialError::Denied(message),
        _ => CredentialError::Unusable(message),
    }
}

#[cfg(test)]
mod tests {
    use base::{CredentialName, Secret};

    use super::*;

    fn ctx(raw: bool) -> CredentialsCtx {
        let name = CredentialName::parse("token").unwrap();
        let granted = GrantedCredential { name, value: Secret::new("canary".into()), domains: Vec::new(), raw };
        CredentialsCtx::new(Some(Arc::new(RunSecrets::new(vec![granted], Arc::default()))))
    }

    fn text(error: CredentialError) -> String {
        match error {
            CredentialError::Missing(text) => format!("missing: {text}"),
            CredentialError::Denied(text) => format!("denied: {text}"),
            CredentialError::Unusable(text) => format!("unusable: {text}"),
        }
    }

    #[tokio::test]
    async fn what_was_granted_is_computed_with_and_stays_here() {
        let mut ctx = ctx(false);
        let mut view = CredentialsView(&mut ctx);
        assert!(view.exists("token".into()).unwrap());
        let code = view.hmac_sha256("token".into(), b"data".to_vec()).await.unwrap().unwrap();
        assert_eq!(code.len(), 32);
        let error = view.sign("token".into(), SignatureAlgorithm::Ed25519, Vec::new()).await.unwrap().map_err(text);
        assert!(
            error.as_ref().is_err_and(|text| text.starts_with("unusable: ") && !text.contains("canary")),
            "{error:?}"
        );
        let error = view.reveal("token".into()).unwrap().map_err(text).unwrap_err();
        assert!(error.starts_with("denied: ") && !error.contains("canary"), "{error}");
    }

    #[tokio::test]
    async fn what_was_not_granted_does_not_exist() {
        for mut ctx in [ctx(true), CredentialsCtx::default()] {
            let mut view = CredentialsView(&mut ctx);
            assert!(!view.exists("other".into()).unwrap());
            let name = format!("other\u{202e}{}", "x".repeat(1_000_000));
            for error in [
                view.hmac_sha256(name.clone(), Vec::new()).await.unwrap().map_err(text).unwrap_err(),
                view.sign(name.clone(), SignatureAlgorithm::Ed25519, Vec::new())
                    .await
                    .unwrap()
                    .map_err(text)
                    .unwrap_err(),
                view.reveal(name).unwrap().map_err(text).unwrap_err(),
            ] {
                assert!(error.starts_with("missing: ") && error.len() < 300 && !error.contains('\u{202e}'), "{error}");
            }
        }
    }

    #[test]
    fn the_value_itself_needs_a_grant_of_exactly_that() {
        assert_eq!(
            CredentialsView(&mut ctx(true)).reveal("token".into()).unwrap().map_err(text),
            Ok("canary".to_owned())
        );
    }
}
