//! `motor spend`: the money that agents spent on models, by day (SPEC EN-4).

use agent::AgentSpend;
use clap::Args;
use llm::MicroUsd;

use super::Done;
use super::context::Context;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::output::table::TextTable;
use crate::output::text;
use crate::words::cost;

/// Arguments of `motor spend`.
#[derive(Debug, Args)]
pub(super) struct SpendArgs {
    /// Days to show, today included: 1 to 400. Days are those of UTC
    #[arg(long, value_name = "N", default_value_t = 30)]
    days: u32,
    /// The spending of all agents
    #[arg(long)]
    all: bool,
}

pub(super) async fn run(SpendArgs { days, all }: SpendArgs, context: &Context) -> Done {
    context
        .with_host(async |session| {
            let agent = if all { String::new() } else { format!("&agent={}", context.agent()) };
            let spent: Vec<AgentSpend> = session.ask(&Call::get(format!("/v1/spend?days={days}{agent}"))).await?;
            if spent.is_empty() && !context.output.is_json() {
                context.output.say("nothing was spent: no model was called in these days");
                return Ok(CommandExit::Ok);
            }
            context.answer(&spent, || render(&spent, context.output.columns))?;
            Ok(CommandExit::Ok)
        })
        .await
}

fn render(spent: &[AgentSpend], columns: usize) -> String {
    let mut table = TextTable::new(&["DAY", "AGENT", ">REPLIES", ">TOKENS IN", ">CACHED", ">OUT", "COST"]);
    for AgentSpend { day, agent, spend } in spent {
        table.row([
            day.clone(),
            agent.to_string(),
            text::thousands(spend.replies),
            text::thousands(spend.input_tokens),
            text::thousands(spend.cached_input_tokens),
            text::thousands(spend.output_tokens),
            cost::shown(Some(spend.usd), spend.unpriced, spend.replies),
        ]);
    }
    let (usd, unpriced, replies) = spent.iter().fold((MicroUsd::ZERO, 0, 0), |(usd, unpriced, replies), day| {
        (usd.plus(day.spend.usd), unpriced + day.spend.unpriced, replies + day.spend.replies)
    });
    format!("{}total {}", table.render(columns), cost::shown(Some(usd), unpriced, replies))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn days_with_their_sum_and_unknown_prices() {
        let spent: Vec<AgentSpend> = serde_json::from_value(json!([
            { "day": "2026-11-26", "agent": "main", "usd": 0.75, "replies": 3, "unpriced": 1, "inputTokens": 12_000, "cachedInputTokens": 9_000, "outputTokens": 300 },
            { "day": "2026-11-25", "agent": "main", "usd": 1.0, "replies": 1, "inputTokens": 100, "outputTokens": 10 },
        ]))
        .unwrap();
        expect![[r#"
            DAY         AGENT  REPLIES  TOKENS IN  CACHED  OUT  COST
            2026-11-26  main         3     12,000   9,000  300  $0.75, with 1 of 3 replies of unknown price
            2026-11-25  main         1        100       0   10  $1.00
            total $1.75, with 1 of 4 replies of unknown price"#]]
        .assert_eq(&render(&spent, 100));
    }
}
