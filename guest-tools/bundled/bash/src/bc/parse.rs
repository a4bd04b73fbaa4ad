//! The language of `bc`: statements, expressions and functions as they are written.

use super::number::Fault;

/// Depth of expressions within expressions.
const MAX_DEPTH: usize = 60;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Number(String),
    Text(String),
    Name(String),
    Mark(&'static str),
    Line,
}

/// Operators and marks, longer ones first.
const MARKS: [&str; 33] = [
    "&&", "||", "==", "!=", "<=", ">=", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "(", ")", "{", "}", "[", "]",
    "+", "-", "*", "/", "%", "^", "<", ">", "=", "!", ",", ";", ".",
];

/// Where a value is kept.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Place {
    Named(String),
    Element(String, Box<Expr>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expr {
    Number(String),
    Read(Place),
    /// `op` is `=`, or the operator before it: `+=`.
    Assign(Place, &'static str, Box<Expr>),
    /// `++x` or `x++`: whether the value is that from before.
    Step(Place, i64, bool),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Negate(Box<Expr>),
    Not(Box<Expr>),
    Group(Box<Expr>),
    Call(String, Vec<Expr>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Statement {
    Expr(Expr),
    Text(String),
    Print(Vec<Statement>),
    If(Expr, Box<Statement>, Option<Box<Statement>>),
    While(Expr, Box<Statement>),
    For(Option<Expr>, Option<Expr>, Option<Expr>, Box<Statement>),
    Block(Vec<Statement>),
    Define(String, Function),
    Break,
    Continue,
    Return(Option<Expr>),
    Quit,
}

/// A function of the script's.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Function {
    pub parameters: Vec<String>,
    pub local: Vec<String>,
    pub body: Vec<Statement>,
}

/// Cuts a script into tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after = |count: usize| rest.get(count..).unwrap_or_default();
        if first == '\n' {
            tokens.push(Token::Line);
            rest = after(1);
        } else if let Some(continued) = rest.strip_prefix("\\\n") {
            rest = continued;
        } else if first.is_whitespace() {
            rest = after(first.len_utf8());
        } else if first == '#' {
            rest = after(rest.find('\n').unwrap_or(rest.len()));
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").ok_or("a comment is not closed")?.1;
        } else if let Some(quoted) = rest.strip_prefix('"') {
            let (text, behind) = quoted.split_once('"').ok_or("a text is not closed")?;
            tokens.push(Token::Text(text.to_owned()));
            rest = behind;
        } else if first.is_ascii_lowercase() {
            let end = rest.find(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit() && c != '_');
            let (name, behind) = rest.split_at(end.unwrap_or(rest.len()));
            tokens.push(Token::Name(name.to_owned()));
            rest = behind;
        } else if first.is_ascii_digit()
            || ('A'..='F').contains(&first)
            || (first == '.' && after(1).starts_with(|c: char| c.is_ascii_hexdigit()))
        {
            let mut points = 0;
            let end = rest.find(|c: char| {
                points += usize::from(c == '.');
                !(c.is_ascii_digit() || ('A'..='F').contains(&c) || (c == '.' && points == 1))
            });
            let (number, behind) = rest.split_at(end.unwrap_or(rest.len()));
            tokens.push(Token::Number(number.to_owned()));
            rest = behind;
        } else if let Some(mark) = MARKS.into_iter().find(|mark| rest.starts_with(mark)) {
            tokens.push(Token::Mark(mark));
            rest = after(mark.len());
        } else {
            return Err(format!("illegal character: {}", first.escape_debug()));
        }
    }
    Ok(tokens)
}

/// Reads one statement after another.
pub(super) struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser {
    pub(super) fn new(tokens: Vec<Token>) -> Self {
        Self { tokens, at: 0, depth: 0 }
    }

    /// The next statement of the script; `None` at its end.
    pub(super) fn next(&mut self) -> Result<Option<Statement>, Fault> {
        while self.take_mark(";") || self.take_line() {}
        if self.at >= self.tokens.len() {
            return Ok(None);
        }
        let statement = self.statement()?;
        let ends = matches!(self.peek(), None | Some(Token::Line | Token::Mark(";")));
        // A block ends where it ends.
        if ends || matches!(self.tokens.get(self.at.saturating_sub(1)), Some(Token::Mark("}"))) {
            Ok(Some(statement))
        } else {
            Err(self.unexpected())
        }
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn is_mark(&self, mark: &str) -> bool {
        matches!(self.peek(), Some(Token::Mark(found)) if *found == mark)
    }

    fn take_mark(&mut self, mark: &str) -> bool {
        let is = self.is_mark(mark);
        self.at += usize::from(is);
        is
    }

    fn take_line(&mut self) -> bool {
        let is = self.peek() == Some(&Token::Line);
        self.at += usize::from(is);
        is
    }

    fn lines(&mut self) {
        while self.take_line() {}
    }

    fn expect(&mut self, mark: &str) -> Result<(), Fault> {
        if self.take_mark(mark) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> Fault {
        match self.peek() {
            None => "syntax error: unexpected end".to_owned(),
            Some(Token::Line) => "syntax error: unexpected end of the line".to_owned(),
            Some(Token::Number(text) | Token::Text(text) | Token::Name(text)) => {
                format!("syntax error at `{}`", text.chars().take(40).collect::<String>())
            }
            Some(Token::Mark(mark)) => format!("syntax error at `{mark}`"),
        }
    }

    fn name(&mut self) -> Result<String, Fault> {
        match self.peek() {
            Some(Token::Name(name)) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        self.depth += 1;
        let parsed =
            if self.depth > MAX_DEPTH { Err("the script is nested too deeply".to_owned()) } else { parse(self) };
        self.depth -= 1;
        parsed
    }

    fn statement(&mut self) -> Result<Statement, Fault> {
        self.deeper(Self::plain_statement)
    }

    fn plain_statement(&mut self) -> Result<Statement, Fault> {
        if self.is_mark("{") {
            return Ok(Statement::Block(self.block()?));
        }
        let word = match self.peek() {
            Some(Token::Text(text)) => {
                let text = Statement::Text(text.clone());
                self.at += 1;
                return Ok(text);
            }
            Some(Token::Name(name)) => name.clone(),
            _ => String::new(),
        };
        let start = self.at;
        self.at += 1;
        Ok(match word.as_str() {
            "break" => Statement::Break,
            "continue" => Statement::Continue,
            "quit" | "halt" => Statement::Quit,
            "return" => match self.peek() {
                None | Some(Token::Line | Token::Mark(";" | "}")) => Statement::Return(None),
                _ => Statement::Return(Some(self.expr()?)),
            },
            "print" => Statement::Print(self.pieces()?),
            "if" => {
                let condition = self.condition()?;
                let then = Box::new(self.statement()?);
                let before_else = self.at;
                while self.take_mark(";") || self.take_line() {}
                let has_else = matches!(self.peek(), Some(Token::Name(name)) if name == "else");
                if !has_else {
                    self.at = before_else;
                    return Ok(Statement::If(condition, then, None));
                }
                self.at += 1;
                self.lines();
                Statement::If(condition, then, Some(Box::new(self.statement()?)))
            }
            "while" => Statement::While(self.condition()?, Box::new(self.statement()?)),
            "for" => {
                self.expect("(")?;
                let first = self.optional(";")?;
                let condition = self.optional(";")?;
                let step = self.optional(")")?;
                self.lines();
                Statement::For(first, condition, step, Box::new(self.statement()?))
            }
            "define" => self.define()?,
            "auto" | "else" | "read" | "limits" | "warranty" => {
                self.at = start;
                return Err(self.unexpected());
            }
            _ => {
                self.at = start;
                Statement::Expr(self.expr()?)
            }
        })
    }

    fn block(&mut self) -> Result<Vec<Statement>, Fault> {
        self.expect("{")?;
        let mut block = Vec::new();
        loop {
            while self.take_mark(";") || self.take_line() {}
            if self.take_mark("}") {
                return Ok(block);
            }
            block.push(self.statement()?);
            if !matches!(self.peek(), Some(Token::Line | Token::Mark(";" | "}")))
                && !matches!(self.tokens.get(self.at.saturating_sub(1)), Some(Token::Mark("}")))
            {
                return Err(self.unexpected());
            }
        }
    }

    fn pieces(&mut self) -> Result<Vec<Statement>, Fault> {
        let mut pieces = Vec::new();
        loop {
            pieces.push(match self.peek() {
                Some(Token::Text(text)) => {
                    let text = Statement::Text(text.clone());
                    self.at += 1;
                    text
                }
                _ => Statement::Expr(self.expr()?),
            });
            if !self.take_mark(",") {
                return Ok(pieces);
            }
        }
    }

    fn condition(&mut self) -> Result<Expr, Fault> {
        self.expect("(")?;
        let condition = self.expr()?;
        self.expect(")")?;
        self.lines();
        Ok(condition)
    }

    fn optional(&mut self, end: &str) -> Result<Option<Expr>, Fault> {
        if self.take_mark(end) {
            return Ok(None);
        }
        let expr = self.expr()?;
        self.expect(end)?;
        Ok(Some(expr))
    }

    fn define(&mut self) -> Result<Statement, Fault> {
        let mut name = self.name()?;
        if name == "void" {
            name = self.name()?;
        }
        self.expect("(")?;
        let parameters = if self.take_mark(")") { Vec::new() } else { self.names(")")? };
        self.lines();
        let start = self.at;
        let mut local = Vec::new();
        // `auto` is the first statement of a body.
        self.expect("{")?;
        self.lines();
        if matches!(self.peek(), Some(Token::Name(name)) if name == "auto") {
            self.at += 1;
            local = self.names("")?;
            self.at -= 1;
            if let Some(token) = self.tokens.get_mut(self.at) {
                *token = Token::Mark("{");
            }
        } else {
            self.at = start;
        }
        let body = self.block()?;
        Ok(Statement::Define(name, Function { parameters, local, body }))
    }

    fn names(&mut self, end: &str) -> Result<Vec<String>, Fault> {
        let mut names = Vec::new();
        loop {
            names.push(self.name()?);
            if self.is_mark("[") {
                return Err("arrays cannot be handed to functions here".to_owned());
            }
            if !self.take_mark(",") {
                break;
            }
        }
        if end.is_empty() {
            if self.take_line() || self.take_mark(";") { Ok(names) } else { Err(self.unexpected()) }
        } else {
            self.expect(end)?;
            Ok(names)
        }
    }

    /// From the loosest operator to the tightest: `||`, `&&`, `!`, comparisons, assignments, sums, products, powers.
    pub(super) fn expr(&mut self) -> Result<Expr, Fault> {
        self.deeper(|parser| parser.chain(&["||"], |parser| parser.chain(&["&&"], Self::not)))
    }

    fn chain(
        &mut self,
        marks: &[&'static str],
        mut tighter: impl FnMut(&mut Self) -> Result<Expr, Fault>,
    ) -> Result<Expr, Fault> {
        let mut left = tighter(self)?;
        while let Some(mark) = marks.iter().find(|mark| self.is_mark(mark)) {
            self.at += 1;
            left = Expr::Binary(mark, Box::new(left), Box::new(tighter(self)?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr, Fault> {
        if self.take_mark("!") {
            return self.deeper(|parser| Ok(Expr::Not(Box::new(parser.not()?))));
        }
        self.chain(&["==", "!=", "<=", ">=", "<", ">"], Self::assignment)
    }

    fn assignment(&mut self) -> Result<Expr, Fault> {
        let left = self.chain(&["+", "-"], |parser| parser.chain(&["*", "/", "%"], Self::power))?;
        let marks = ["=", "+=", "-=", "*=", "/=", "%=", "^="];
        let Some(mark) = marks.into_iter().find(|mark| self.is_mark(mark)) else { return Ok(left) };
        let Expr::Read(place) = left else { return Err(self.unexpected()) };
        self.at += 1;
        self.deeper(|parser| Ok(Expr::Assign(place, mark, Box::new(parser.assignment()?))))
    }

    fn power(&mut self) -> Result<Expr, Fault> {
        let base = self.unary()?;
        if !self.take_mark("^") {
            return Ok(base);
        }
        self.deeper(|parser| Ok(Expr::Binary("^", Box::new(base), Box::new(parser.power()?))))
    }

    fn unary(&mut self) -> Result<Expr, Fault> {
        if self.take_mark("-") {
            return self.deeper(|parser| Ok(Expr::Negate(Box::new(parser.unary()?))));
        }
        for (mark, by) in [("++", 1), ("--", -1)] {
            if self.take_mark(mark) {
                return match self.primary()? {
                    Expr::Read(place) => Ok(Expr::Step(place, by, false)),
                    _ => Err(self.unexpected()),
                };
            }
        }
        let primary = self.primary()?;
        for (mark, by) in [("++", 1), ("--", -1)] {
            if let Expr::Read(place) = &primary
                && self.take_mark(mark)
            {
                return Ok(Expr::Step(place.clone(), by, true));
            }
        }
        Ok(primary)
    }

    fn primary(&mut self) -> Result<Expr, Fault> {
        if self.take_mark("(") {
            let inner = self.expr()?;
            self.expect(")")?;
            return Ok(Expr::Group(Box::new(inner)));
        }
        if self.take_mark(".") {
            return Ok(Expr::Read(Place::Named("last".to_owned())));
        }
        if let Some(Token::Number(number)) = self.peek() {
            let number = Expr::Number(number.clone());
            self.at += 1;
            return Ok(number);
        }
        let name = self.name()?;
        if self.take_mark("[") {
            let index = self.expr()?;
            self.expect("]")?;
            return Ok(Expr::Read(Place::Element(name, Box::new(index))));
        }
        if !self.take_mark("(") {
            return Ok(Expr::Read(Place::Named(name)));
        }
        let mut arguments = Vec::new();
        while !self.take_mark(")") {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            arguments.push(self.expr()?);
        }
        Ok(Expr::Call(name, arguments))
    }
}
