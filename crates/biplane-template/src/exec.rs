//! Runs programs.
//!
//! Active templates are on a stack of our own, so that recursion in a template cannot exhaust the
//! thread's.

mod call;
mod field;
mod range;

use std::rc::Rc;

use biplane_go::fmt::quote;

use self::range::Loop;
use crate::budget::{Budget, Exceeded, Limits};
use crate::error::{Place, RunError, line_and_column};
use crate::func::{Call, Failure, Host};
use crate::program::{NodeId, Op, Program, ROOT, Symbol};
use crate::slot::Slot;
use crate::value::{Object, Signature, Value, break_cycles, watch_changes};

/// What a missing key of a map is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// No value.
    #[default]
    Default,
    /// The zero value of the map's elements.
    Zero,
    /// An error.
    Error,
}

impl MissingKey {
    /// Reads an option of a template. The error is what Go panics with.
    pub fn option(text: &str) -> std::result::Result<Self, String> {
        match text {
            "" => Err("empty option string".into()),
            "missingkey=default" | "missingkey=invalid" => Ok(Self::Default),
            "missingkey=zero" => Ok(Self::Zero),
            "missingkey=error" => Ok(Self::Error),
            _ => Err(format!("unrecognized option: {text}")),
        }
    }
}

/// How deep templates may call templates. The number is part of Go's message.
const MAX_DEPTH: u32 = 100_000;

/// No node has been reached.
const NOWHERE: NodeId = NodeId::MAX;

/// Why an instruction failed.
#[derive(Debug)]
pub(crate) enum Trouble {
    Message(String),
    /// A name does not exist. These look like it.
    Misspelt {
        message: String,
        name: String,
        near: Vec<String>,
    },
    Limit(Exceeded),
}

impl From<String> for Trouble {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

impl From<&str> for Trouble {
    fn from(message: &str) -> Self {
        Self::Message(message.into())
    }
}

impl From<Exceeded> for Trouble {
    fn from(exceeded: Exceeded) -> Self {
        Self::Limit(exceeded)
    }
}

type Result<T> = std::result::Result<T, Trouble>;

/// An active template.
struct Frame {
    template: usize,
    /// The next instruction.
    pc: usize,
    /// Where errors happen.
    node: NodeId,
    /// How deep it is below the main template or an `include`.
    depth: u32,
    /// The first of its variables, which is `$`.
    vars: usize,
    dots: usize,
    marks: usize,
    loops: usize,
    stack: usize,
    /// The call that includes it.
    include: Option<NodeId>,
}

/// A method whose operands are being evaluated.
struct Pending {
    object: Rc<dyn Object>,
    signature: Signature,
}

struct Machine<'a> {
    program: &'a Program,
    missing: MissingKey,
    host: &'a dyn Host,
    budget: Budget,
    frames: Vec<Frame>,
    stack: Vec<Slot>,
    vars: Vec<(Symbol, Slot)>,
    dots: Vec<Slot>,
    marks: Vec<usize>,
    loops: Vec<Loop>,
    pending: Vec<Pending>,
    /// The output, and that of each active `include`.
    outputs: Vec<Vec<u8>>,
    /// How often each template is being included.
    included: Vec<u32>,
    /// The lists of operands and outputs that are not used now, to be used again.
    spare_operands: Vec<Value>,
    spare_outputs: Vec<Vec<u8>>,
}

/// Runs the main template.
pub(crate) fn run(
    program: &Program,
    data: &Value,
    missing: MissingKey,
    host: &dyn Host,
    limits: Limits,
) -> std::result::Result<Vec<u8>, RunError> {
    watch_changes();
    let result = run_machine(program, data, missing, host, limits);
    break_cycles();
    result
}

fn run_machine(
    program: &Program,
    data: &Value,
    missing: MissingKey,
    host: &dyn Host,
    limits: Limits,
) -> std::result::Result<Vec<u8>, RunError> {
    let mut machine = Machine {
        program,
        missing,
        host,
        budget: Budget::new(limits),
        frames: Vec::new(),
        stack: Vec::new(),
        vars: Vec::new(),
        dots: Vec::new(),
        marks: Vec::new(),
        loops: Vec::new(),
        pending: Vec::new(),
        outputs: vec![Vec::with_capacity(program.source.len())],
        included: vec![0; program.templates.len()],
        spare_operands: Vec::new(),
        spare_outputs: Vec::new(),
    };
    let main = program.by_name.get(&program.name).copied().unwrap_or_default();
    let started = machine.enter(main, Slot::plain(data.clone()), 0, None);
    if let Err(trouble) = started.and_then(|()| machine.run()) {
        return Err(machine.error(trouble));
    }
    Ok(machine.outputs.pop().unwrap_or_default())
}

impl Machine<'_> {
    /// Starts a template. Its data are both the dot and `$`.
    fn enter(
        &mut self,
        template: usize,
        data: Slot,
        depth: u32,
        include: Option<NodeId>,
    ) -> Result<()> {
        if self.frames.len() >= self.budget.limits.depth {
            return Err(Exceeded::Depth(self.budget.limits.depth).into());
        }
        self.frames.push(Frame {
            template,
            pc: 0,
            node: NOWHERE,
            depth,
            vars: self.vars.len(),
            dots: self.dots.len(),
            marks: self.marks.len(),
            loops: self.loops.len(),
            stack: self.stack.len(),
            include,
        });
        self.vars.push((ROOT, data.clone()));
        self.dots.push(data);
        Ok(())
    }

    /// Ends the active template. Returns whether there is another one.
    fn leave(&mut self) -> bool {
        let Some(frame) = self.frames.pop() else { return false };
        self.vars.truncate(frame.vars);
        self.dots.truncate(frame.dots);
        self.marks.truncate(frame.marks);
        self.loops.truncate(frame.loops);
        self.stack.truncate(frame.stack);
        if frame.include.is_some() {
            if let Some(count) = self.included.get_mut(frame.template) {
                *count -= 1;
            }
            let mut output = self.outputs.pop().unwrap_or_default();
            self.stack.push(Slot::Plain(Value::text(output.as_slice())));
            output.clear();
            self.spare_outputs.push(output);
        }
        !self.frames.is_empty()
    }

    fn run(&mut self) -> Result<()> {
        let program = self.program;
        'frames: loop {
            let Some(frame) = self.frames.last() else { return Ok(()) };
            let ops = program.templates.get(frame.template).map_or(&[][..], |code| &code.ops);
            let mut pc = frame.pc;
            while let Some(op) = ops.get(pc) {
                pc += 1;
                self.budget.spend(1, self.host)?;
                match *op {
                    Op::At(node) => self.at(node),
                    Op::Jump(target) => pc = target as usize,
                    Op::Branch(target) => {
                        if !self.pop().value().is_true() {
                            pc = target as usize;
                        }
                    }
                    Op::With(target) => {
                        let value = self.pop();
                        if value.value().is_true() {
                            self.dots.push(value);
                        } else {
                            pc = target as usize;
                        }
                    }
                    Op::ShortCut(wanted, target) => {
                        let truth = self.stack.last().is_some_and(|v| v.value().is_true());
                        if truth == wanted {
                            pc = target as usize;
                        } else {
                            self.pop();
                        }
                    }
                    Op::Range(site) => {
                        if let Some(otherwise) = self.start_loop(site)? {
                            pc = otherwise as usize;
                        }
                    }
                    Op::Next(site, end) => {
                        if !self.next_round(site)? {
                            pc = end as usize;
                        }
                    }
                    Op::Method(site) => {
                        if let Some(skip) = self.start_method(site)? {
                            pc = skip as usize;
                        }
                    }
                    Op::Call(site) => {
                        self.resume_at(pc);
                        if self.call(site)? {
                            continue 'frames;
                        }
                    }
                    Op::Invoke(name) => {
                        self.resume_at(pc);
                        self.invoke(name)?;
                        continue 'frames;
                    }
                    ref other => self.simple(other)?,
                }
            }
            if !self.leave() {
                return Ok(());
            }
        }
    }

    /// Executes an instruction that goes on to the next one.
    fn simple(&mut self, op: &Op) -> Result<()> {
        let program = self.program;
        match *op {
            Op::Text(start, end) => {
                let text = program.source.as_bytes().get(start as usize..end as usize);
                self.write(text.unwrap_or_default())?;
            }
            Op::Print(node) => {
                self.at(node);
                let value = self.pop();
                self.print(&value)?;
            }
            Op::Pop => {
                self.pop();
            }
            Op::Nip => {
                let top = self.pop();
                self.pop();
                self.stack.push(top);
            }
            Op::Const(index) => {
                let literal = program.consts.get(index as usize);
                let value = literal.map_or(Value::Nil, crate::literal::Literal::value);
                let slot =
                    if let Value::Nil = value { Slot::Boxed(value) } else { Slot::Plain(value) };
                self.stack.push(slot);
            }
            Op::Nothing => self.stack.push(Slot::Nothing),
            Op::Dot => {
                let dot = self.dots.last().cloned().unwrap_or(Slot::Nothing);
                self.stack.push(dot);
            }
            Op::Var(symbol) => {
                let index = self.variable(symbol)?;
                let value = self.vars.get(index).map_or(Slot::Nothing, |(_, value)| value.clone());
                self.stack.push(value);
            }
            Op::Declare(symbol) => {
                let value = self.stack.last().cloned().unwrap_or(Slot::Nothing);
                self.vars.push((symbol, value));
            }
            Op::Assign(symbol) => {
                let value = self.stack.last().cloned().unwrap_or(Slot::Nothing);
                self.assign(symbol, value)?;
            }
            Op::Field(name, node) => {
                let receiver = self.pop();
                self.field(receiver, name, node)?;
            }
            Op::Check(index) => {
                if let Some(to) = program.types.get(index as usize) {
                    let value = self.pop().check(*to)?;
                    self.stack.push(value);
                }
            }
            Op::Unbox => {
                let value = self.pop().unbox();
                self.stack.push(value);
            }
            Op::Mark => self.marks.push(self.vars.len()),
            Op::Unmark => {
                if let Some(mark) = self.marks.pop() {
                    self.vars.truncate(mark);
                }
            }
            Op::PopDot => {
                self.dots.pop();
            }
            Op::Break => self.end_loop(),
            Op::MethodConst(node, index) => self.method_const(node, index)?,
            Op::MethodNil(index) => self.method_nil(index)?,
            Op::MethodCheck(index) => self.method_check(index)?,
            Op::MethodCall(site) => self.call_method(site)?,
            Op::Lookup(name, node) => self.lookup(name, node)?,
            Op::Fail(message) => {
                let message = program.messages.get(message as usize).cloned();
                return Err(message.unwrap_or_default().into());
            }
            // The others are jumps, which the loop executes.
            _ => {}
        }
        Ok(())
    }

    fn pop(&mut self) -> Slot {
        self.stack.pop().unwrap_or(Slot::Nothing)
    }

    fn at(&mut self, node: NodeId) {
        if let Some(frame) = self.frames.last_mut() {
            frame.node = node;
        }
    }

    fn resume_at(&mut self, pc: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.pc = pc;
        }
    }

    /// The latest declaration of a variable.
    fn variable(&self, symbol: Symbol) -> Result<usize> {
        let first = self.frames.last().map_or(0, |frame| frame.vars);
        let vars = self.vars.get(first..).unwrap_or_default();
        if let Some(index) = vars.iter().rposition(|(name, _)| *name == symbol) {
            return Ok(first + index);
        }
        let name = self.program.symbols.get(symbol as usize);
        Err(format!("undefined variable: {}", name.map_or("", String::as_str)).into())
    }

    fn assign(&mut self, symbol: Symbol, value: Slot) -> Result<()> {
        let index = self.variable(symbol)?;
        if let Some((_, old)) = self.vars.get_mut(index) {
            *old = value;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.budget.write(bytes.len() as u64)?;
        if let Some(output) = self.outputs.last_mut() {
            output.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn print(&mut self, value: &Slot) -> Result<()> {
        match value.value() {
            Value::Str(text) => self.write(text),
            Value::Nil => self.write(b"<no value>"),
            Value::Bool(flag) => self.write(if *flag { b"true" } else { b"false" }),
            Value::Int(_, number) => self.write(number.to_string().as_bytes()),
            other => {
                let text = Call { host: self.host, budget: &mut self.budget }.display(other);
                let text = text.map_err(|failure| match failure {
                    Failure::Limit(exceeded) => Trouble::Limit(exceeded),
                    Failure::Message(message) => Trouble::Message(message),
                })?;
                self.write(&text)
            }
        }
    }

    /// Checks that a template exists and may be called.
    fn lookup(&mut self, name: u32, node: NodeId) -> Result<()> {
        self.at(node);
        let name = self.program.names.get(name as usize).map_or("", String::as_str);
        if !self.program.by_name.contains_key(name) {
            let names = self.program.by_name.keys().map(String::as_str);
            return Err(Trouble::Misspelt {
                message: format!("template {} not defined", quote(name)),
                name: name.to_owned(),
                near: crate::error::near(name, names),
            });
        }
        if self.frames.last().is_some_and(|frame| frame.depth == MAX_DEPTH) {
            return Err(format!("exceeded maximum template depth ({MAX_DEPTH})").into());
        }
        Ok(())
    }

    fn invoke(&mut self, name: u32) -> Result<()> {
        let name = self.program.names.get(name as usize).map_or("", String::as_str);
        let template = self.program.by_name.get(name).copied().unwrap_or_default();
        let data = self.pop();
        let depth = self.frames.last().map_or(0, |frame| frame.depth) + 1;
        self.enter(template, data, depth, None)
    }

    /// Where the active template is.
    fn place(&self) -> Option<Place> {
        let frame = self.frames.last()?;
        let node = self.program.node(frame.node)?;
        let (line, column) = line_and_column(&self.program.source, node.pos);
        let template = self.program.templates.get(frame.template)?.name.clone();
        let shown = self.program.show(frame.node);
        let offset = node.pos;
        Some(Place { template, line, column, offset, node: shown, ..Place::default() })
    }

    /// Makes a place cover what a person would mark: Go points into the middle of chains.
    fn widen(&self, place: &mut Place) {
        let source = &self.program.source;
        let shown = &place.node;
        // What was written as it is shown begins here, or a step of a chain earlier.
        let starts = |start: usize| source.get(start..).is_some_and(|s| s.starts_with(shown));
        let steps = shown.match_indices('.').map(|(at, _)| at);
        let starts = std::iter::once(0).chain(steps).filter_map(|back| {
            let start = place.offset.checked_sub(back)?;
            starts(start).then_some(start)
        });
        let Some(start) = starts.min() else { return };
        (place.offset, place.length) = (start, shown.len());
        if let Some(name) = &place.misspelt
            && let Some(at) = shown.find(&format!(".{name}"))
        {
            (place.offset, place.length) = (start + at + 1, name.len());
        }
        (place.line, place.column) = line_and_column(source, place.offset);
    }

    fn located(&self, place: Option<&Place>, message: &str) -> String {
        let name = &self.program.name;
        match place {
            None => format!("template: {name}: {message}"),
            Some(Place { line, column, template, node, .. }) => {
                let template = quote(template);
                format!(
                    "template: {name}:{line}:{column}: executing {template} at <{node}>: {message}"
                )
            }
        }
    }

    /// The error of a run, with the calls of `include` around it.
    fn error(mut self, trouble: Trouble) -> RunError {
        let mut place = self.place();
        let (message, limit) = match trouble {
            Trouble::Message(message) => (message, None),
            Trouble::Limit(exceeded) => (exceeded.to_string(), Some(exceeded)),
            Trouble::Misspelt { message, name, near } => {
                if let Some(place) = &mut place {
                    place.misspelt = Some(name);
                    place.near = near;
                }
                (message, None)
            }
        };
        let mut message = self.located(place.as_ref(), &message);
        while let Some(frame) = self.frames.pop() {
            let Some(node) = frame.include else { continue };
            self.at(node);
            let around = self.place();
            message = self.located(around.as_ref(), &format!("error calling include: {message}"));
        }
        if let Some(place) = &mut place {
            self.widen(place);
        }
        RunError { message, place: place.map(Box::new), limit }
    }
}
