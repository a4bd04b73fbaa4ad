//! `motor doctor`: looks without starting anything, so that it works when nothing else does.

use agent::doctor::{Finding, Level, examine};

use super::Done;
use super::context::Context;
use crate::exit::Exit;
use crate::output::{Palette, text};

pub(super) fn run(context: &Context) -> Done {
    let place = context.place()?;
    let findings = examine(&place.home, &place.load()?, &place.env);
    let problems = findings.iter().any(|finding| finding.level == Level::Problem);
    context.answer(&findings, || render(&findings, context.output.out))?;
    Ok(if problems { Exit::Failed } else { Exit::Ok })
}

fn render(findings: &[Finding], palette: Palette) -> String {
    let widest = findings.iter().map(|finding| text::width(finding.name)).max().unwrap_or(0);
    let mut report = String::new();
    for finding in findings {
        let mark = match finding.level {
            Level::Ok => palette.green("ok     "),
            Level::Warning => palette.yellow("warning"),
            Level::Problem => palette.red("problem"),
        };
        let padding = " ".repeat(widest.saturating_sub(text::width(finding.name)));
        report.push_str(&format!("{mark}  {}{padding}  {}\n", finding.name, text::one_line(&finding.message)));
        if let Some(remedy) = &finding.remedy {
            report.push_str(&format!(
                "         {}{padding}  {}\n",
                " ".repeat(text::width(finding.name)),
                palette.cyan(&text::one_line(remedy))
            ));
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_problem_comes_with_its_remedy() {
        let findings = [
            Finding { name: "home", level: Level::Ok, message: "is there".into(), remedy: None },
            Finding {
                name: "a model",
                level: Level::Problem,
                message: "no key".into(),
                remedy: Some("export K=…".into()),
            },
        ];
        expect![[r#"
            ok       home     is there
            problem  a model  no key
                              export K=…
        "#]]
        .assert_eq(&render(&findings, Palette::new(false)));
    }
}
