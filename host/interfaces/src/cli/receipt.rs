//! `motor receipt`: shows how a result was made, and verifies it (SPEC RUN-14). Verifying needs no host and no network.

use std::fmt::Write as _;
use std::path::PathBuf;

use agent::{Home, Verification, VerifyRequest};
use base::{Refusal, RefusalCode, RunId};
use clap::Subcommand;
use receipts::{Receipt, SignedReceipt};
use serde_json::Value;

use super::Done;
use super::context::Context;
use super::task::or_newest;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::text;

/// Subcommands of `motor receipt`.
#[derive(Debug, Subcommand)]
pub(super) enum ReceiptCommand {
    /// Show the receipt of a run that is over; with `--json` the receipt itself
    Show {
        /// The run [default: the newest]
        run: Option<RunId>,
        /// Write the receipt to a file
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Verify a receipt, and the files it names that are present here
    Verify {
        /// The receipt's file
        file: PathBuf,
        /// The key that has to have signed it: `ed25519:…`, or a file that holds it [default: the home's, for its runs]
        #[arg(long, value_name = "PUB")]
        key: Option<String>,
        /// A directory that has to hold the artifacts [default: the run's, if it is in the home]
        #[arg(long, value_name = "DIR")]
        artifacts: Option<PathBuf>,
        /// A directory that has to hold the skill in the version that was used
        #[arg(long, value_name = "DIR")]
        skill: Option<PathBuf>,
        /// A file that has to be a component that was used; may be repeated
        #[arg(long = "component", value_name = "FILE")]
        components: Vec<PathBuf>,
    },
}

pub(super) async fn run(command: ReceiptCommand, context: &Context) -> Done {
    match command {
        ReceiptCommand::Show { run, out } => show(run, out, context).await,
        ReceiptCommand::Verify { file, key, artifacts, skill, components } => {
            // Without any home there is still the file.
            let home = Home::locate(context.globals.home.clone(), &*context.env).ok();
            let request = VerifyRequest { file, home, key, artifacts, skill, components };
            let verifying = tokio::task::spawn_blocking(move || Verification::of(&request));
            let broken = |_| Err(Refusal::new(RefusalCode::Failed, "verifying broke off"));
            let verification = verifying.await.unwrap_or_else(broken)?;
            context.answer(&verification, || verified(&verification))?;
            for path in &verification.other_files {
                context
                    .output
                    .warn(&format!("`{path}` lies beside the artifacts, and the receipt says nothing about it"));
            }
            Ok(CommandExit::Ok)
        }
    }
}

async fn show(run: Option<RunId>, out: Option<PathBuf>, context: &Context) -> Done {
    context
        .with_host(async |session| {
            let run = or_newest(run, session, context).await?;
            let receipt: Value = session.ask(&Call::get(format!("/v1/tasks/{run}/receipt"))).await?;
            let signed = SignedReceipt::of_value(&receipt).map_err(|error| unusable(&error))?;
            let text = signed.text().map_err(|error| unusable(&error))?;
            if let Some(path) = out {
                std::fs::write(&path, &text).map_err(|error| {
                    Refusal::new(RefusalCode::Failed, format!("cannot write `{}`: {error}", path.display()))
                })?;
                context.output.say(&format!("the receipt of {run} is in {}", path.display()));
            } else if context.output.is_json() {
                context.output.print(&text)?;
            } else {
                context.output.print_trusted(&said(&signed))?;
            }
            Ok(CommandExit::Ok)
        })
        .await
}

fn unusable(error: &receipts::VerifyError) -> Refusal {
    Refusal::new(RefusalCode::Failed, format!("the host gave a receipt that cannot be used: {error}"))
}

/// Columns of the left side.
const LABEL: usize = 15;

fn line(page: &mut String, label: &str, text: &str) {
    writeln!(page, "{label:<LABEL$}{}", text::one_line(text)).ok();
}

fn verified(verification: &Verification) -> String {
    let mut page = String::new();
    writeln!(page, "receipt of {}, {}", verification.run_id, verification.status.as_str()).ok();
    for checked in &verification.checked {
        line(&mut page, "  ok", &format!("{}: {}", checked.what, checked.detail));
    }
    for left in &verification.not_checked {
        line(&mut page, "  not checked", &format!("{}: {}; {}", left.what, left.detail, left.remedy));
    }
    line(&mut page, "  signed with", &verification.key.to_string());
    page
}

fn said(signed: &SignedReceipt) -> String {
    let Receipt { artifacts, components, approvals, answers, hosts, .. } = signed.receipt();
    let receipt = signed.receipt();
    let mut page = String::new();
    line(&mut page, "run", receipt.run_id.as_str());
    line(&mut page, "task", &text::brief(&receipt.task.beginning, 66));
    let attempts = if receipt.attempts == 1 { String::new() } else { format!(", attempt {}", receipt.attempts) };
    line(&mut page, "status", &format!("{}{attempts}", receipt.status.as_str()));
    if let Some(seed) = receipt.seed {
        line(&mut page, "seed", &seed.to_string());
    }
    if let Some(result) = receipt.result.as_deref().or(receipt.error.as_deref()) {
        line(&mut page, "result", &text::brief(result, 66));
    }
    for artifact in artifacts {
        line(
            &mut page,
            "artifact",
            &format!("{}, {}, {}", artifact.path, text::bytes(artifact.bytes), artifact.hash.short()),
        );
    }
    if let Some(skill) = &receipt.skill {
        line(&mut page, "skill", &format!("{}, {}", skill.name, skill.hash.short()));
    }
    line(&mut page, "models", &or_none(&receipt.models.join(", ")));
    for component in components {
        line(&mut page, "component", &format!("{}, called as {}", component.hash.short(), component.tools.join(", ")));
    }
    for approval in approvals {
        let word = if approval.granted { "granted" } else { "not granted" };
        let by = approval.consent.as_ref().map(|consent| format!(" by {}", consent.given_by)).unwrap_or_default();
        for action in &approval.actions {
            line(&mut page, "approval", &format!("{word}{by}: {}", action.summary));
        }
    }
    for answer in answers {
        line(&mut page, "answer", &format!("by {} to: {}", answer.consent.given_by, answer.question));
    }
    for host in hosts {
        let refused = if host.refused == 0 { String::new() } else { format!(", {} refused", host.refused) };
        let statuses: Vec<_> =
            host.statuses.iter().map(|status| format!("{} × {}", status.count, status.status)).collect();
        let statuses = if statuses.is_empty() { String::new() } else { format!(", {}", statuses.join(", ")) };
        let requests = text::plural(host.requests, "request");
        line(&mut page, "host", &format!("{}: {requests}{refused}{statuses}", host.host));
    }
    for unknown in &receipt.unknown_outcomes {
        line(&mut page, "unknown", &format!("nobody knows whether it took effect: {unknown}"));
    }
    line(&mut page, "credentials", &or_none(&receipt.credentials.join(", ")));
    let energy = receipt.energy.millionths as f64 / 1e6;
    let cost = receipt.cost_micro_usd.map(|cost| format!(", ${:.4}", cost as f64 / 1e6)).unwrap_or_default();
    let tokens = receipt.tokens;
    line(
        &mut page,
        "spent",
        &format!(
            "energy {energy:.2}, {} tokens in, {} out{cost}",
            text::thousands(tokens.input),
            text::thousands(tokens.output)
        ),
    );
    line(&mut page, "signed with", &signed.key().to_string());
    page
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "none".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use agent::{CheckedFile, UncheckedFile};
    use expect_test::expect;
    use receipts::{Energy, Issuer, ReceiptHost, ReceiptOutcome, SigningKey, StatusCount, Task, Tokens, VERSION};

    use super::*;

    fn key() -> SigningKey {
        let der = "MC4CAQAwBQYDK2VwBCIEIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB";
        SigningKey::from_text(&format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----")).unwrap()
    }

    #[test]
    fn what_was_compared_and_what_not_is_told_apart() {
        let page = verified(&Verification {
            run_id: RunId::parse("run_1").unwrap(),
            status: ReceiptOutcome::Completed,
            key: key().public(),
            checked: vec![CheckedFile { what: "signature", detail: "fits".into() }],
            not_checked: vec![UncheckedFile {
                what: "skill",
                detail: "`sums\u{1b}[2J`".into(),
                remedy: "pass `--skill`",
            }],
            other_files: vec![],
        });
        expect![[r#"
            receipt of run_1, completed
              ok           signature: fits
              not checked  skill: `sums [2J`; pass `--skill`
              signed with  ed25519:8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c
        "#]]
        .assert_eq(&page);
    }

    #[test]
    fn a_receipt_is_shown_without_what_could_move_the_cursor() {
        let time = base::Timestamp::from_millis(1);
        let host = |host: &str, refused, statuses: &[(u16, u64)]| ReceiptHost {
            host: host.into(),
            requests: 3,
            refused,
            methods: vec!["GET".into()],
            statuses: statuses.iter().map(|(status, count)| StatusCount { status: *status, count: *count }).collect(),
        };
        let receipt = Receipt {
            version: VERSION,
            run_id: RunId::parse("run_1").unwrap(),
            agent: base::AgentName::default(),
            task: Task::of("add\u{1b}[2J it\nup"),
            status: ReceiptOutcome::Failed,
            attempts: 2,
            seed: None,
            created_at: time,
            started_at: None,
            completed_at: None,
            models: vec![],
            result: None,
            error: Some("it broke".into()),
            artifacts: vec![],
            skill: None,
            components: vec![],
            approvals: vec![],
            answers: vec![],
            hosts: vec![host("a.example", 0, &[(200, 2), (404, 1)]), host("b.example", 3, &[])],
            unknown_outcomes: vec!["step 3: `fetch`".into()],
            credentials: vec!["api_key".into()],
            energy: Energy { millionths: 110_000 },
            tokens: Tokens { input: 1_000, output: 5 },
            cost_micro_usd: Some(12_300),
            issuer: Issuer { key_id: key().public().id(), host_version: "0.1.0".into() },
        };
        expect![[r#"
            run            run_1
            task           add [2J it up
            status         failed, attempt 2
            result         it broke
            models         none
            host           a.example: 3 requests, 2 × 200, 1 × 404
            host           b.example: 3 requests, 3 refused
            unknown        nobody knows whether it took effect: step 3: `fetch`
            credentials    api_key
            spent          energy 0.11, 1,000 tokens in, 5 out, $0.0123
            signed with    ed25519:8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c
        "#]]
        .assert_eq(&said(&SignedReceipt::sign(receipt, &key()).unwrap()));
    }
}
