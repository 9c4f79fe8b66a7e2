//! Parses the text of templates into programs.
//!
//! Open blocks are on a stack of our own, so that no nesting of blocks can exhaust the thread's.

mod emit;
mod expression;

use std::collections::BTreeMap;
use std::sync::Arc;

use biplane_go::fmt::quote;

use crate::error::{ParseError, Place, line_and_column, near};
use crate::func::Func;
use crate::lex::{Delimiters, Kind, Lexer, Token};
use crate::literal::unquote;
use crate::program::{Code, Node, NodeId, NodeKind, Op, Program, ROOT, RangeSite, Target};

pub(crate) use self::emit::{constant_of, wrong_count};

pub(crate) type Functions = BTreeMap<&'static str, Arc<Func>>;

/// An open `if`, `with` or `range`.
struct Control {
    kind: Kind,
    /// How many variables were declared before it.
    vars: usize,
    /// The instruction that goes to the else branch.
    branch: usize,
    /// The instruction that skips the else branch.
    skip: Option<usize>,
    in_else: bool,
    /// The start of a round of a loop.
    next: usize,
    /// The jumps of `break`.
    breaks: Vec<usize>,
    /// Whether it is an `else if`: its end is also the end of what it is in.
    chained: bool,
}

enum Origin {
    Main,
    Define,
    /// The position of the name, and the argument.
    Block(usize, NodeId),
}

/// A template that is being parsed.
struct Tree {
    code: Code,
    origin: Origin,
    vars: Vec<String>,
    controls: Vec<Control>,
    /// The line of the action that is being parsed, if known.
    action_line: usize,
    /// The line of the latest token.
    line: usize,
}

impl Tree {
    fn new(name: String, origin: Origin) -> Self {
        Self {
            code: Code { name, ops: Vec::new(), empty: true },
            origin,
            vars: vec!["$".into()],
            controls: Vec::new(),
            action_line: 0,
            line: 0,
        }
    }
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    functions: &'t Functions,
    program: Program,
    tree: Tree,
    /// Trees around the current one.
    outer: Vec<Tree>,
    /// Up to three tokens that were put back.
    tokens: [Token<'t>; 3],
    peeked: usize,
    /// The offset of the latest token.
    latest: usize,
    depth: usize,
    symbols: BTreeMap<String, u32>,
    names: BTreeMap<String, u32>,
}

type Result<T> = std::result::Result<T, ParseError>;

/// Parses a text. The main template has the name of the text.
pub(crate) fn parse(
    name: &str,
    text: &str,
    functions: &Functions,
    delimiters: &Delimiters,
) -> Result<Program> {
    let mut lexer = Lexer::new(text, delimiters);
    lexer.break_is_keyword = !functions.contains_key("break");
    lexer.continue_is_keyword = !functions.contains_key("continue");
    let nothing = Token { kind: Kind::Eof, pos: 0, text: "".into(), line: 0 };
    let program = Program { name: name.to_owned(), source: text.to_owned(), ..Program::default() };
    let mut parser = Parser {
        lexer,
        functions,
        program,
        tree: Tree::new(name.to_owned(), Origin::Main),
        outer: Vec::new(),
        tokens: [nothing.clone(), nothing.clone(), nothing],
        peeked: 0,
        latest: 0,
        depth: 0,
        symbols: BTreeMap::new(),
        names: BTreeMap::new(),
    };
    let root = parser.symbol("$");
    debug_assert_eq!(root, ROOT, "the first name has the first number");
    parser.run()
}

impl<'t> Parser<'t> {
    fn next(&mut self) -> Token<'t> {
        if self.peeked > 0 {
            self.peeked -= 1;
        } else {
            self.lex();
        }
        self.tokens[self.peeked].clone()
    }

    fn lex(&mut self) {
        let token = self.lexer.token();
        self.tree.line = token.line;
        self.latest = token.pos;
        self.tokens[0] = token;
    }

    fn backup(&mut self) {
        self.peeked += 1;
    }

    /// Puts a token back before the latest one.
    fn backup2(&mut self, first: Token<'t>) {
        self.tokens[1] = first;
        self.peeked = 2;
    }

    fn backup3(&mut self, first: Token<'t>, second: Token<'t>) {
        self.tokens[1] = second;
        self.tokens[2] = first;
        self.peeked = 3;
    }

    fn peek(&mut self) -> &Token<'t> {
        if self.peeked == 0 {
            self.lex();
            self.peeked = 1;
        }
        &self.tokens[self.peeked - 1]
    }

    fn next_non_space(&mut self) -> Token<'t> {
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    fn peek_non_space(&mut self) -> Token<'t> {
        let token = self.next_non_space();
        self.backup();
        token
    }

    /// An error at the latest token.
    fn error(&self, message: impl AsRef<str>) -> ParseError {
        let (line, column) = line_and_column(&self.program.source, self.latest);
        let text =
            format!("template: {}:{}: {}", self.program.name, self.tree.line, message.as_ref());
        let place = Place {
            template: self.tree.code.name.clone(),
            line,
            column,
            offset: self.latest,
            ..Place::default()
        };
        ParseError::new(text, place)
    }

    /// An error about a name that does not exist.
    fn misspelt(&self, message: &str, token: &Token<'_>, names: &[&str]) -> ParseError {
        let error = self.error(message);
        let (line, column) = line_and_column(&self.program.source, token.pos);
        let place = Place {
            line,
            column,
            offset: token.pos,
            length: token.text.len(),
            misspelt: Some(token.text.to_string()),
            near: near(&token.text, names.iter().copied()),
            ..error.place().clone()
        };
        ParseError::new(error.to_string(), place)
    }

    fn unexpected(&self, token: &Token<'_>, context: &str) -> ParseError {
        if token.kind != Kind::Error {
            return self.error(format!("unexpected {} in {context}", token.show()));
        }
        let mut extra = String::new();
        if self.tree.action_line != 0 && self.tree.action_line != token.line {
            // A message that ends with the word goes on after it.
            let words = if token.text.ends_with(" action") { "" } else { " in action" };
            extra = format!("{words} started at {}:{}", self.program.name, self.tree.action_line);
        }
        self.error(format!("{}{extra}", token.text))
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Result<Token<'t>> {
        let token = self.next_non_space();
        if token.kind == kind { Ok(token) } else { Err(self.unexpected(&token, context)) }
    }

    fn op(&mut self, op: Op) -> usize {
        self.tree.code.ops.push(op);
        self.tree.code.ops.len() - 1
    }

    fn here(&self) -> Target {
        self.tree.code.ops.len() as Target
    }

    /// Makes an instruction go here.
    fn patch(&mut self, at: usize) {
        let here = self.here();
        match self.tree.code.ops.get_mut(at) {
            Some(
                Op::Jump(target)
                | Op::Branch(target)
                | Op::With(target)
                | Op::Next(_, target)
                | Op::ShortCut(_, target),
            ) => *target = here,
            Some(Op::Range(site)) => {
                if let Some(site) = self.program.ranges.get_mut(*site as usize) {
                    site.otherwise = here;
                }
            }
            Some(Op::Method(site)) => {
                if let Some(site) = self.program.methods.get_mut(*site as usize) {
                    site.skip = here;
                }
            }
            _ => {}
        }
    }

    fn node(&mut self, pos: usize, kind: NodeKind) -> NodeId {
        self.program.nodes.push(Node { pos, kind });
        (self.program.nodes.len() - 1) as NodeId
    }

    fn symbol(&mut self, name: &str) -> u32 {
        intern(&mut self.symbols, &mut self.program.symbols, name)
    }

    fn name(&mut self, name: &str) -> u32 {
        intern(&mut self.names, &mut self.program.names, name)
    }

    fn run(mut self) -> Result<Program> {
        loop {
            let top = matches!(self.tree.origin, Origin::Main) && self.tree.controls.is_empty();
            match self.peek_non_space().kind {
                Kind::Eof if top => break,
                Kind::Eof => return Err(self.error("unexpected EOF")),
                Kind::LeftDelim if top => {
                    let delimiter = self.next();
                    if self.next_non_space().kind == Kind::Define {
                        self.open_definition()?;
                        continue;
                    }
                    self.backup2(delimiter);
                }
                _ => {}
            }
            self.text_or_action()?;
        }
        let tree = std::mem::take(&mut self.tree.code);
        self.add(tree)?;
        Ok(self.program)
    }

    /// Adds a finished template. Only one definition of a name may be more than white space.
    fn add(&mut self, code: Code) -> Result<()> {
        let Some(index) = self.program.by_name.get(&code.name).copied() else {
            self.program.by_name.insert(code.name.clone(), self.program.templates.len());
            self.program.templates.push(code);
            return Ok(());
        };
        let message = format!("template: multiple definition of template {}", quote(&code.name));
        match self.program.templates.get_mut(index) {
            Some(old) if old.empty => *old = code,
            _ if code.empty => {}
            _ => return Err(self.error(message)),
        }
        Ok(())
    }

    fn text_or_action(&mut self) -> Result<()> {
        let token = self.next_non_space();
        match token.kind {
            Kind::Text => {
                self.tree.code.empty &=
                    !self.tree.controls.is_empty() || token.text.trim().is_empty();
                self.op(Op::Text(token.pos as u32, (token.pos + token.text.len()) as u32));
                Ok(())
            }
            Kind::LeftDelim => {
                self.tree.action_line = token.line;
                self.action()
            }
            _ => Err(self.unexpected(&token, "input")),
        }
    }

    fn action(&mut self) -> Result<()> {
        let token = self.next_non_space();
        match token.kind {
            Kind::Block => return self.open_block(),
            Kind::If | Kind::With | Kind::Range => return self.open(token.kind, false),
            Kind::Break | Kind::Continue => self.leave(&token)?,
            Kind::Else => self.else_control()?,
            Kind::End => {
                self.expect(Kind::RightDelim, "end")?;
                self.end()?;
            }
            Kind::Template => self.template()?,
            _ => {
                self.backup();
                let pos = self.peek().pos;
                let pipe = self.pipeline("command", Kind::RightDelim)?;
                let action = self.node(pos, NodeKind::Action(pipe));
                self.emit_pipeline(pipe);
                let silent = self.declares(pipe);
                self.op(if silent { Op::Pop } else { Op::Print(action) });
                self.tree.code.empty = false;
            }
        }
        self.tree.action_line = 0;
        Ok(())
    }

    fn declares(&self, pipe: NodeId) -> bool {
        matches!(
            self.program.node(pipe).map(|n| &n.kind),
            Some(NodeKind::Pipe { names, .. }) if !names.is_empty()
        )
    }

    /// `break` and `continue`.
    fn leave(&mut self, token: &Token<'t>) -> Result<()> {
        let word = if token.kind == Kind::Break { "{{break}}" } else { "{{continue}}" };
        let after = self.next_non_space();
        if after.kind != Kind::RightDelim {
            return Err(self.unexpected(&after, word));
        }
        let mut loops = self.tree.controls.iter().enumerate().rev();
        let innermost = loops.find(|(_, c)| c.kind == Kind::Range && !c.in_else);
        let Some((index, next)) = innermost.map(|(index, c)| (index, c.next)) else {
            return Err(self.error(format!("{word} outside {{{{range}}}}")));
        };
        if token.kind == Kind::Continue {
            self.op(Op::Jump(next as Target));
            return Ok(());
        }
        self.op(Op::Break);
        let jump = self.op(Op::Jump(0));
        if let Some(control) = self.tree.controls.get_mut(index) {
            control.breaks.push(jump);
        }
        Ok(())
    }

    /// Begins an `if`, `with` or `range`.
    fn open(&mut self, kind: Kind, chained: bool) -> Result<()> {
        self.tree.code.empty = false;
        let vars = self.tree.vars.len();
        self.op(Op::Mark);
        let context = match kind {
            Kind::If => "if",
            Kind::With => "with",
            _ => "range",
        };
        let pipe = self.pipeline(context, Kind::RightDelim)?;
        self.emit_pipeline(pipe);
        let mut next = 0;
        let branch = match kind {
            Kind::If => self.op(Op::Branch(0)),
            Kind::With => self.op(Op::With(0)),
            _ => {
                let (names, assign) = match self.program.node(pipe).map(|n| n.kind.clone()) {
                    Some(NodeKind::Pipe { names, assign, .. }) => (names, assign),
                    _ => (Vec::new(), false),
                };
                let names = names.iter().map(|name| self.symbol(name)).collect();
                self.program.ranges.push(RangeSite { names, assign, otherwise: 0 });
                let site = (self.program.ranges.len() - 1) as u32;
                let branch = self.op(Op::Range(site));
                next = self.op(Op::Next(site, 0));
                branch
            }
        };
        self.tree.controls.push(Control {
            kind,
            vars,
            branch,
            skip: None,
            in_else: false,
            next,
            breaks: Vec::new(),
            chained,
        });
        Ok(())
    }

    fn else_control(&mut self) -> Result<()> {
        let follows = self.peek_non_space().kind;
        if !matches!(follows, Kind::If | Kind::With) {
            self.expect(Kind::RightDelim, "else")?;
        }
        let Some(mut control) = self.tree.controls.pop() else {
            return Err(match &self.tree.origin {
                Origin::Main => self.error("unexpected {{else}}"),
                Origin::Define => self.error("unexpected {{else}} in define clause"),
                Origin::Block(..) => {
                    // The complaint is that of the template around the block.
                    if let Some(outer) = self.outer.last() {
                        self.tree.line = outer.line;
                    }
                    self.error("unexpected {{else}} in block clause")
                }
            });
        };
        if control.in_else {
            return Err(self.error("expected end; found {{else}}"));
        }
        self.finish_body(&mut control, true);
        control.in_else = true;
        let kind = control.kind;
        self.tree.controls.push(control);
        self.tree.action_line = 0;
        if kind == follows {
            self.next();
            return self.open(kind, true);
        }
        Ok(())
    }

    /// Ends the body of a control structure. The else branch begins here, if there is one.
    fn finish_body(&mut self, control: &mut Control, more: bool) {
        match control.kind {
            Kind::Range => {
                self.op(Op::Jump(control.next as Target));
            }
            Kind::With => {
                self.op(Op::PopDot);
            }
            _ => {}
        }
        if more && control.kind != Kind::Range {
            control.skip = Some(self.op(Op::Jump(0)));
        }
        // Without an else branch, what does not happen goes to the end.
        self.patch(control.branch);
    }

    fn end(&mut self) -> Result<()> {
        while let Some(mut control) = self.tree.controls.pop() {
            if !control.in_else {
                self.finish_body(&mut control, false);
            }
            if let Some(skip) = control.skip {
                self.patch(skip);
            }
            if control.kind == Kind::Range {
                self.patch(control.next);
                for jump in control.breaks {
                    self.patch(jump);
                }
            }
            self.op(Op::Unmark);
            self.tree.vars.truncate(control.vars);
            if !control.chained {
                return Ok(());
            }
        }
        self.end_tree()
    }

    /// Ends a definition or a block.
    fn end_tree(&mut self) -> Result<()> {
        let Some(outer) = self.outer.pop() else {
            return Err(self.error("unexpected {{end}}"));
        };
        let code = std::mem::take(&mut self.tree.code);
        let name = code.name.clone();
        self.add(code)?;
        let inner = std::mem::replace(&mut self.tree, outer);
        if let Origin::Block(pos, pipe) = inner.origin {
            self.call_template(pos, name, Some(pipe));
        }
        Ok(())
    }

    fn enter(&mut self, name: String, origin: Origin) {
        let outer = std::mem::replace(&mut self.tree, Tree::new(name, origin));
        self.outer.push(outer);
    }

    fn open_definition(&mut self) -> Result<()> {
        const CONTEXT: &str = "define clause";
        self.enter("definition".into(), Origin::Define);
        let token = self.next_non_space();
        if !matches!(token.kind, Kind::String | Kind::RawString) {
            return Err(self.unexpected(&token, CONTEXT));
        }
        self.tree.code.name = self.template_name(&token, CONTEXT)?;
        self.expect(Kind::RightDelim, CONTEXT)?;
        Ok(())
    }

    fn template_name(&self, token: &Token<'t>, context: &str) -> Result<String> {
        if !matches!(token.kind, Kind::String | Kind::RawString) {
            return Err(self.unexpected(token, context));
        }
        let bytes = unquote(&token.text).map_err(|error| self.error(error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn open_block(&mut self) -> Result<()> {
        const CONTEXT: &str = "block clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, Kind::RightDelim)?;
        self.enter(name, Origin::Block(token.pos, pipe));
        Ok(())
    }

    fn template(&mut self) -> Result<()> {
        const CONTEXT: &str = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let mut pipe = None;
        if self.next_non_space().kind != Kind::RightDelim {
            self.backup();
            pipe = Some(self.pipeline(CONTEXT, Kind::RightDelim)?);
        }
        self.call_template(token.pos, name, pipe);
        Ok(())
    }

    fn call_template(&mut self, pos: usize, name: String, pipe: Option<NodeId>) {
        let called = self.name(&name);
        let node = self.node(pos, NodeKind::Template { name, pipe });
        self.op(Op::Lookup(called, node));
        match pipe {
            Some(pipe) => self.emit_pipeline(pipe),
            None => {
                self.op(Op::Nothing);
            }
        }
        self.op(Op::Invoke(called));
        self.tree.code.empty = false;
        self.tree.action_line = 0;
    }
}

fn intern(known: &mut BTreeMap<String, u32>, all: &mut Vec<String>, name: &str) -> u32 {
    if let Some(index) = known.get(name) {
        return *index;
    }
    let index = all.len() as u32;
    all.push(name.to_owned());
    known.insert(name.to_owned(), index);
    index
}
