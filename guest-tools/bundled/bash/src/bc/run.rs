//! Runs statements of `bc`.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::math;
use super::number::{Fault, Number};
use super::parse::{Expr, Function, Place, Statement};

/// Statements and operations of one script: some seconds.
const MAX_WORK: u64 = 3_000_000;
/// Calls within calls: the component's stack is small.
const MAX_CALLS: usize = 24;
/// The most digits behind the point.
const MAX_SCALE: u32 = 2_000;
/// Bytes that a script may print.
const MAX_OUTPUT_BYTES: usize = 4 << 20;
/// The largest base of output.
const MAX_BASE: u32 = 999;

/// The step that follows a statement.
enum Flow {
    Next,
    Break,
    Continue,
    Return(Number),
    Quit,
}

/// The state of a script.
pub(super) struct Machine {
    scale: u32,
    input: u32,
    output: u32,
    math: bool,
    last: Number,
    names: HashMap<String, Number>,
    arrays: HashMap<String, HashMap<i64, Number>>,
    functions: HashMap<String, Function>,
    work: u64,
    calls: usize,
    /// The text printed so far.
    pub out: String,
}

impl Machine {
    /// `math` stands for `bc -l`.
    pub(super) fn new(math: bool) -> Self {
        Self {
            scale: if math { 20 } else { 0 },
            input: 10,
            output: 10,
            math,
            last: Number::from(0),
            names: HashMap::new(),
            arrays: HashMap::new(),
            functions: HashMap::new(),
            work: 0,
            calls: 0,
            out: String::new(),
        }
    }

    /// Runs a statement of the script. Whether the script goes on.
    pub(super) fn run(&mut self, statement: &Statement) -> Result<bool, Fault> {
        Ok(!matches!(self.statement(statement)?, Flow::Quit))
    }

    fn works(&mut self) -> Result<(), Fault> {
        self.work += 1;
        if self.work > MAX_WORK { Err(format!("more than {MAX_WORK} steps")) } else { Ok(()) }
    }

    fn print(&mut self, text: &str) -> Result<(), Fault> {
        self.out.push_str(text);
        if self.out.len() > MAX_OUTPUT_BYTES { Err("more output than a command may have".to_owned()) } else { Ok(()) }
    }

    fn statement(&mut self, statement: &Statement) -> Result<Flow, Fault> {
        self.works()?;
        match statement {
            Statement::Expr(expr) => {
                let value = self.value(expr)?;
                if !matches!(expr, Expr::Assign(..)) {
                    let text = value.print(self.output);
                    self.print(&text)?;
                    self.print("\n")?;
                    self.last = value;
                }
            }
            Statement::Text(text) => self.print(text)?,
            Statement::Print(pieces) => {
                for piece in pieces {
                    match piece {
                        Statement::Text(text) => self.print(&unescaped(text))?,
                        Statement::Expr(expr) => {
                            let value = self.value(expr)?;
                            self.print(&value.print(self.output))?;
                            self.last = value;
                        }
                        _ => {}
                    }
                }
            }
            Statement::If(condition, then, otherwise) => {
                if !self.value(condition)?.is_zero() {
                    return self.statement(then);
                } else if let Some(otherwise) = otherwise {
                    return self.statement(otherwise);
                }
            }
            Statement::While(condition, body) => {
                while !self.value(condition)?.is_zero() {
                    match self.statement(body)? {
                        Flow::Break => break,
                        Flow::Next | Flow::Continue => {}
                        flow => return Ok(flow),
                    }
                }
            }
            Statement::For(first, condition, step, body) => {
                if let Some(first) = first {
                    self.value(first)?;
                }
                loop {
                    if let Some(condition) = condition
                        && self.value(condition)?.is_zero()
                    {
                        break;
                    }
                    match self.statement(body)? {
                        Flow::Break => break,
                        Flow::Next | Flow::Continue => {}
                        flow => return Ok(flow),
                    }
                    if let Some(step) = step {
                        self.value(step)?;
                    }
                }
            }
            Statement::Block(block) => {
                for statement in block {
                    match self.statement(statement)? {
                        Flow::Next => {}
                        flow => return Ok(flow),
                    }
                }
            }
            Statement::Define(name, function) => {
                self.functions.insert(name.clone(), function.clone());
            }
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
            Statement::Return(value) => {
                let value = value.as_ref().map_or_else(|| Ok(Number::from(0)), |value| self.value(value))?;
                return Ok(Flow::Return(value));
            }
            Statement::Quit => return Ok(Flow::Quit),
        }
        Ok(Flow::Next)
    }

    fn value(&mut self, expr: &Expr) -> Result<Number, Fault> {
        self.works()?;
        let truth = |is: bool| Ok(Number::from(i64::from(is)));
        match expr {
            Expr::Number(text) => Number::read(text, self.input),
            Expr::Read(place) => self.read(place),
            Expr::Group(inner) => self.value(inner),
            Expr::Negate(inner) => Ok(self.value(inner)?.negate()),
            Expr::Not(inner) => truth(self.value(inner)?.is_zero()),
            Expr::Assign(place, mark, value) => {
                let mut value = self.value(value)?;
                if let Some(operator) = mark.strip_suffix('=').filter(|operator| !operator.is_empty()) {
                    let before = self.read(place)?;
                    value = self.calculate(operator, &before, &value)?;
                }
                self.write(place, value.clone())?;
                Ok(value)
            }
            Expr::Step(place, by, gives_before) => {
                let before = self.read(place)?;
                let after = before.add(&Number::from(*by));
                self.write(place, after.clone())?;
                Ok(if *gives_before { before } else { after })
            }
            Expr::Binary(mark, left, right) => {
                let left = self.value(left)?;
                match *mark {
                    "&&" if left.is_zero() => return truth(false),
                    "||" if !left.is_zero() => return truth(true),
                    _ => {}
                }
                let right = self.value(right)?;
                self.calculate(mark, &left, &right)
            }
            Expr::Call(name, arguments) => {
                let values: Vec<Number> =
                    arguments.iter().map(|argument| self.value(argument)).collect::<Result<_, _>>()?;
                self.call(name, values)
            }
        }
    }

    fn calculate(&self, operator: &str, left: &Number, right: &Number) -> Result<Number, Fault> {
        let truth = |is: bool| Ok(Number::from(i64::from(is)));
        let order = || left.compare(right);
        match operator {
            "+" => Ok(left.add(right)),
            "-" => Ok(left.subtract(right)),
            "*" => left.multiply(right, self.scale),
            "/" => left.divide(right, self.scale),
            "%" => left.remainder(right, self.scale),
            "^" => left.power(right, self.scale),
            "&&" | "||" => truth(!right.is_zero()),
            "==" => truth(order() == Ordering::Equal),
            "!=" => truth(order() != Ordering::Equal),
            "<" => truth(order() == Ordering::Less),
            "<=" => truth(order() != Ordering::Greater),
            ">" => truth(order() == Ordering::Greater),
            _ => truth(order() != Ordering::Less),
        }
    }

    fn index(&mut self, index: &Expr) -> Result<i64, Fault> {
        let index = i64::try_from(self.value(index)?.whole()).ok().filter(|index| (0..=65_535).contains(index));
        index.ok_or_else(|| "the index of an array is out of bounds".to_owned())
    }

    fn read(&mut self, place: &Place) -> Result<Number, Fault> {
        Ok(match place {
            Place::Named(name) => match name.as_str() {
                "scale" => Number::from(self.scale.into()),
                "ibase" => Number::from(self.input.into()),
                "obase" => Number::from(self.output.into()),
                "last" => self.last.clone(),
                name => self.names.get(name).cloned().unwrap_or_else(|| Number::from(0)),
            },
            Place::Element(name, index) => {
                let index = self.index(index)?;
                let found = self.arrays.get(name).and_then(|array| array.get(&index));
                found.cloned().unwrap_or_else(|| Number::from(0))
            }
        })
    }

    fn write(&mut self, place: &Place, value: Number) -> Result<(), Fault> {
        let setting = |what: &str, range: std::ops::RangeInclusive<u32>| {
            let number = u32::try_from(value.whole()).ok().filter(|number| range.contains(number));
            number.ok_or_else(|| format!("`{what}` has to be between {} and {}", range.start(), range.end()))
        };
        match place {
            Place::Named(name) => match name.as_str() {
                "scale" => self.scale = setting("scale", 0..=MAX_SCALE)?,
                "ibase" => self.input = setting("ibase", 2..=16)?,
                "obase" => self.output = setting("obase", 2..=MAX_BASE)?,
                "last" => self.last = value,
                name => drop(self.names.insert(name.to_owned(), value)),
            },
            Place::Element(name, index) => {
                let index = self.index(index)?;
                self.arrays.entry(name.clone()).or_default().insert(index, value);
            }
        }
        Ok(())
    }

    fn call(&mut self, name: &str, arguments: Vec<Number>) -> Result<Number, Fault> {
        if let Some(function) = self.functions.get(name).cloned() {
            return self.call_own(name, &function, arguments);
        }
        let [argument] = arguments.as_slice() else { return Err(format!("the function `{name}` is not known")) };
        match name {
            "sqrt" => argument.root(self.scale),
            "length" => Ok(Number::from(argument.length())),
            "scale" => Ok(Number::from(argument.scale().into())),
            name if self.math => math::call(name, argument, self.scale),
            _ => Err(format!("the function `{name}` is not known")),
        }
    }

    fn call_own(&mut self, name: &str, function: &Function, arguments: Vec<Number>) -> Result<Number, Fault> {
        if arguments.len() != function.parameters.len() {
            return Err(format!("`{name}` takes {} values", function.parameters.len()));
        }
        if self.calls >= MAX_CALLS {
            return Err(format!("functions call each other more than {MAX_CALLS} deep"));
        }
        // Names of a function are those of its caller's again when it ends.
        let zeros = function.local.iter().map(|name| (name, Number::from(0)));
        let own: Vec<_> = function.parameters.iter().zip(arguments).chain(zeros).collect();
        let hidden: Vec<_> =
            own.into_iter().map(|(name, value)| (name.clone(), self.names.insert(name.clone(), value))).collect();
        self.calls += 1;
        let mut result = Number::from(0);
        for statement in &function.body {
            match self.statement(statement)? {
                Flow::Return(value) => {
                    result = value;
                    break;
                }
                Flow::Quit => return Err("`quit` within a function".to_owned()),
                _ => {}
            }
        }
        self.calls -= 1;
        for (name, value) in hidden.into_iter().rev() {
            match value {
                Some(value) => self.names.insert(name, value),
                None => self.names.remove(&name),
            };
        }
        Ok(result)
    }
}

/// The text of `print`, with its escapes.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some('q') => plain.push('"'),
            Some('a') => plain.push('\u{7}'),
            Some('b') => plain.push('\u{8}'),
            Some('f') => plain.push('\u{c}'),
            Some('\\') => plain.push('\\'),
            other => plain.extend(other),
        }
    }
    plain
}
