//! Parses pipelines, commands and operands.

use super::{Parser, Result};
use crate::lex::Kind;
use crate::literal::{Number, unquote};
use crate::program::{NodeId, NodeKind};

/// How deep parentheses may nest. Go allows 10 000, which would need a larger stack.
const MAX_DEPTH: usize = 500;

impl Parser<'_> {
    /// A pipeline up to its end, which is a right delimiter or parenthesis.
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Result<NodeId> {
        let pos = self.peek_non_space().pos;
        let (names, assign) = self.declarations(context)?;
        let mut commands = Vec::new();
        loop {
            let token = self.next_non_space();
            match token.kind {
                kind if kind == end => break,
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::RawString
                | Kind::String
                | Kind::Variable
                | Kind::LeftParen => {
                    self.backup();
                    commands.push(self.command()?);
                }
                _ => return Err(self.unexpected(&token, context)),
            }
        }
        if commands.is_empty() {
            return Err(self.error(format!("missing value for {context}")));
        }
        for (index, command) in commands.iter().enumerate().skip(1) {
            if self.starts_with_constant(*command) {
                let stage = index + 1;
                return Err(self.error(format!("non executable command in pipeline stage {stage}")));
            }
        }
        Ok(self.node(pos, NodeKind::Pipe { names, assign, commands }))
    }

    fn starts_with_constant(&self, command: NodeId) -> bool {
        let Some(NodeKind::Command(operands)) = self.program.node(command).map(|n| &n.kind) else {
            return false;
        };
        let first = operands.first().and_then(|first| self.program.node(*first));
        matches!(
            first.map(|n| &n.kind),
            Some(
                NodeKind::Bool(_)
                    | NodeKind::Dot
                    | NodeKind::Nil
                    | NodeKind::Number(_)
                    | NodeKind::Str { .. }
            )
        )
    }

    /// The variables before `:=` or `=`.
    fn declarations(&mut self, context: &str) -> Result<(Vec<String>, bool)> {
        let mut names = Vec::new();
        loop {
            if self.peek_non_space().kind != Kind::Variable {
                return Ok((names, false));
            }
            let variable = self.next();
            // A space after the variable must be put back if it is an operand.
            let after = self.peek().clone();
            let next = self.peek_non_space();
            match next.kind {
                Kind::Assign | Kind::Declare => {
                    self.next_non_space();
                    self.tree.vars.push(variable.text.to_string());
                    names.push(variable.text.into_owned());
                    return Ok((names, next.kind == Kind::Assign));
                }
                Kind::Char if next.text == "," => {
                    self.next_non_space();
                    self.tree.vars.push(variable.text.to_string());
                    names.push(variable.text.into_owned());
                    if context != "range" || names.len() > 1 {
                        return Err(self.error(format!("too many declarations in {context}")));
                    }
                    let follows = self.peek_non_space().kind;
                    if !matches!(follows, Kind::Variable | Kind::RightDelim | Kind::RightParen) {
                        return Err(self.error("range can only initialize variables"));
                    }
                }
                _ if after.kind == Kind::Space => {
                    self.backup3(variable, after);
                    return Ok((names, false));
                }
                _ => {
                    self.backup2(variable);
                    return Ok((names, false));
                }
            }
        }
    }

    fn command(&mut self) -> Result<NodeId> {
        let pos = self.peek_non_space().pos;
        let mut operands = Vec::new();
        loop {
            self.peek_non_space();
            operands.extend(self.operand()?);
            let token = self.next();
            match token.kind {
                Kind::Space => {}
                Kind::RightDelim | Kind::RightParen => {
                    self.backup();
                    break;
                }
                Kind::Pipe => break,
                _ => return Err(self.unexpected(&token, "operand")),
            }
        }
        if operands.is_empty() {
            return Err(self.error("empty command"));
        }
        Ok(self.node(pos, NodeKind::Command(operands)))
    }

    /// A term and the fields after it.
    fn operand(&mut self) -> Result<Option<NodeId>> {
        let Some(term) = self.term()? else { return Ok(None) };
        if self.peek().kind != Kind::Field {
            return Ok(Some(term));
        }
        let pos = self.peek().pos;
        let mut fields = Vec::new();
        while self.peek().kind == Kind::Field {
            let token = self.next();
            fields.push(token.text.get(1..).unwrap_or_default().to_owned());
        }
        let kind = self.program.node(term).map(|n| n.kind.clone());
        let kind = match kind {
            Some(NodeKind::Field(mut names)) => {
                names.append(&mut fields);
                NodeKind::Field(names)
            }
            Some(NodeKind::Variable(mut names)) => {
                names.append(&mut fields);
                NodeKind::Variable(names)
            }
            Some(
                NodeKind::Bool(_)
                | NodeKind::Str { .. }
                | NodeKind::Number(_)
                | NodeKind::Nil
                | NodeKind::Dot,
            ) => {
                let term = biplane_go::fmt::quote(&self.program.show(term));
                return Err(self.error(format!("unexpected . after term {term}")));
            }
            _ => NodeKind::Chain(term, fields),
        };
        Ok(Some(self.node(pos, kind)))
    }

    fn term(&mut self) -> Result<Option<NodeId>> {
        let token = self.next_non_space();
        let text = &token.text;
        let kind = match token.kind {
            Kind::Identifier => {
                let Some(func) = self.functions.get(text.as_ref()) else {
                    let name = biplane_go::fmt::quote(text);
                    let names: Vec<&str> = self.functions.keys().copied().collect();
                    let message = format!("function {name} not defined");
                    return Err(self.misspelt(&message, &token, &names));
                };
                NodeKind::Identifier(func.clone())
            }
            Kind::Dot => NodeKind::Dot,
            Kind::Nil => NodeKind::Nil,
            Kind::Variable => {
                if !self.tree.vars.iter().any(|name| name == text.as_ref()) {
                    let name = biplane_go::fmt::quote(text);
                    let names: Vec<&str> = self.tree.vars.iter().map(String::as_str).collect();
                    let message = format!("undefined variable {name}");
                    return Err(self.misspelt(&message, &token, &names));
                }
                NodeKind::Variable(vec![text.to_string()])
            }
            Kind::Field => NodeKind::Field(vec![text.get(1..).unwrap_or_default().to_owned()]),
            Kind::Bool => NodeKind::Bool(text == "true"),
            Kind::CharConstant | Kind::Complex | Kind::Number => {
                let number = match token.kind {
                    Kind::CharConstant => Number::character(text),
                    Kind::Complex => Number::complex(text),
                    _ => Number::parse(text),
                };
                NodeKind::Number(number.map_err(|error| self.error(error))?)
            }
            Kind::LeftParen => {
                if self.depth >= MAX_DEPTH {
                    return Err(self.error("max expression depth exceeded"));
                }
                self.depth += 1;
                let pipe = self.pipeline("parenthesized pipeline", Kind::RightParen)?;
                self.depth -= 1;
                return Ok(Some(pipe));
            }
            Kind::String | Kind::RawString => {
                let bytes = unquote(text).map_err(|error| self.error(error))?;
                NodeKind::Str { quoted: text.to_string(), text: bytes.into() }
            }
            _ => {
                self.backup();
                return Ok(None);
            }
        };
        Ok(Some(self.node(token.pos, kind)))
    }
}
