//! Turns expressions into instructions.
//!
//! Everything that is known before the run is decided here: how many operands a function takes, and
//! whether constants fit its parameters. Wrong calls fail when they are reached, as in Go.

use std::sync::Arc;

use super::Parser;
use crate::func::{Builtin, Code, Func};
use crate::literal::{Constant, Literal, convert, ideal};
use crate::program::{MethodSite, NodeId, NodeKind, Op, Site};
use crate::types::Type;

impl Parser<'_> {
    /// Leaves the value of a pipeline on the stack.
    pub(super) fn emit_pipeline(&mut self, pipe: NodeId) {
        let Some(NodeKind::Pipe { names, assign, commands }) = self.kind(pipe) else { return };
        self.op(Op::At(pipe));
        for (index, command) in commands.into_iter().enumerate() {
            self.emit_command(command, index > 0);
            self.op(Op::Unbox);
        }
        for name in names {
            let symbol = self.symbol(&name);
            self.op(if assign { Op::Assign(symbol) } else { Op::Declare(symbol) });
        }
    }

    fn kind(&self, node: NodeId) -> Option<NodeKind> {
        self.program.node(node).map(|n| n.kind.clone())
    }

    fn fail(&mut self, message: String) {
        self.program.messages.push(message);
        self.op(Op::Fail((self.program.messages.len() - 1) as u32));
    }

    fn constant(&mut self, literal: Literal) {
        self.program.consts.push(literal);
        self.op(Op::Const((self.program.consts.len() - 1) as u32));
    }

    fn constant_or_fail(&mut self, literal: Result<Literal, String>) {
        match literal {
            Ok(literal) => self.constant(literal),
            Err(message) => self.fail(message),
        }
    }

    fn emit_command(&mut self, command: NodeId, piped: bool) {
        let Some(NodeKind::Command(operands)) = self.kind(command) else { return };
        let Some((&first, rest)) = operands.split_first() else { return };
        let extra = !rest.is_empty() || piped;
        let Some(kind) = self.kind(first) else { return };
        let not_a_function = |parser: &mut Self| {
            let shown = parser.program.show(first);
            parser.fail(format!("can't give argument to non-function {shown}"));
        };
        match kind {
            NodeKind::Field(names) => {
                self.op(Op::At(first));
                self.op(Op::Dot);
                self.emit_steps(first, &names, rest, piped);
            }
            NodeKind::Chain(inner, names) => {
                if self.emit_chain_start(first, inner) {
                    self.emit_steps(first, &names, rest, piped);
                }
            }
            NodeKind::Identifier(func) => self.emit_call(first, command, &func, rest, piped),
            NodeKind::Pipe { .. } if extra => not_a_function(self),
            NodeKind::Pipe { .. } => self.emit_pipeline(first),
            NodeKind::Variable(names) => {
                let single = self.emit_variable(first, &names);
                if !single {
                    self.emit_steps(first, names.get(1..).unwrap_or_default(), rest, piped);
                } else if extra {
                    not_a_function(self);
                }
            }
            other => {
                self.op(Op::At(first));
                if extra {
                    return not_a_function(self);
                }
                match (&other, constant_of(&other)) {
                    (_, Some(constant)) => self.constant_or_fail(ideal(constant)),
                    (NodeKind::Dot, _) => {
                        self.op(Op::Dot);
                    }
                    _ => self.fail("nil is not a command".into()),
                }
            }
        }
    }

    /// Pushes a variable. Returns whether no fields follow.
    fn emit_variable(&mut self, node: NodeId, names: &[String]) -> bool {
        self.op(Op::At(node));
        let symbol = names.first().map(String::as_str).unwrap_or_default();
        let symbol = self.symbol(symbol);
        self.op(Op::Var(symbol));
        names.len() <= 1
    }

    /// Pushes what the fields of a chain are looked up in. Returns whether that can succeed.
    fn emit_chain_start(&mut self, chain: NodeId, inner: NodeId) -> bool {
        self.op(Op::At(chain));
        let kind = self.kind(inner);
        if matches!(kind, Some(NodeKind::Nil)) {
            let shown = self.program.show(chain);
            self.fail(format!("indirection through explicit nil in {shown}"));
            return false;
        }
        self.op(Op::At(inner));
        match kind {
            Some(NodeKind::Pipe { .. }) => self.emit_pipeline(inner),
            Some(NodeKind::Identifier(func)) => self.emit_call(inner, inner, &func, &[], false),
            _ => {}
        }
        true
    }

    /// Looks fields up in the value on the stack. Operands go to the last one.
    fn emit_steps(&mut self, node: NodeId, names: &[String], args: &[NodeId], piped: bool) {
        let Some((last, first)) = names.split_last() else { return };
        for name in first {
            let name = self.name(name);
            self.op(Op::Field(name, node));
        }
        let name = self.name(last);
        if args.is_empty() && !piped {
            self.op(Op::Field(name, node));
            return;
        }
        let site = MethodSite { name, node, args: args.len(), piped, skip: 0 };
        self.program.methods.push(site);
        let site = (self.program.methods.len() - 1) as u32;
        let start = self.op(Op::Method(site));
        for (index, arg) in args.iter().enumerate() {
            let index = index as u32;
            self.op(Op::At(*arg));
            match self.kind(*arg) {
                Some(NodeKind::Nil) => {
                    self.op(Op::MethodNil(index));
                }
                Some(kind) if constant_of(&kind).is_some() => {
                    self.op(Op::MethodConst(*arg, index));
                }
                _ => {
                    self.emit_value(*arg);
                    self.op(Op::MethodCheck(index));
                }
            }
        }
        self.op(Op::MethodCall(site));
        self.patch(start);
    }

    /// Pushes the value of an operand that is not a constant.
    fn emit_value(&mut self, arg: NodeId) {
        match self.kind(arg) {
            Some(NodeKind::Dot) => {
                self.op(Op::Dot);
            }
            Some(NodeKind::Field(names)) => {
                self.op(Op::Dot);
                self.emit_steps(arg, &names, &[], false);
            }
            Some(NodeKind::Variable(names)) => {
                let single = self.emit_variable(arg, &names);
                if !single {
                    self.emit_steps(arg, names.get(1..).unwrap_or_default(), &[], false);
                }
            }
            Some(NodeKind::Pipe { .. }) => self.emit_pipeline(arg),
            Some(NodeKind::Identifier(func)) => self.emit_call(arg, arg, &func, &[], false),
            Some(NodeKind::Chain(inner, names)) => {
                let started = self.emit_chain_start(arg, inner);
                if started {
                    self.emit_steps(arg, &names, &[], false);
                }
            }
            _ => {}
        }
    }

    /// Pushes an operand for a parameter of a type.
    fn emit_arg(&mut self, arg: NodeId, to: Type) {
        self.op(Op::At(arg));
        let Some(kind) = self.kind(arg) else { return };
        if let Some(constant) = constant_of(&kind) {
            let shown = self.program.show(arg);
            return self.constant_or_fail(convert(constant, to, &shown));
        }
        if let NodeKind::Nil = kind {
            match to {
                Type::Reflect => {
                    self.op(Op::Nothing);
                }
                _ if to.can_be_nil() => self.constant(Literal::Nil(to)),
                _ => self.fail(format!("cannot assign nil to {to}")),
            }
            return;
        }
        self.emit_value(arg);
        if !matches!(to, Type::Any | Type::Reflect) {
            let index = self.program.types.iter().position(|known| *known == to);
            let index = index.unwrap_or_else(|| {
                self.program.types.push(to);
                self.program.types.len() - 1
            });
            self.op(Op::Check(index as u32));
        }
    }

    /// Calls a function. `node` is what a failed call points at.
    fn emit_call(
        &mut self,
        name: NodeId,
        node: NodeId,
        func: &Arc<Func>,
        args: &[NodeId],
        piped: bool,
    ) {
        self.op(Op::At(name));
        if let Some(message) =
            wrong_count(func.name, func.params.len(), func.variadic, args.len(), piped)
        {
            return self.fail(message);
        }
        if let Code::Builtin(Builtin::And | Builtin::Or) = func.code {
            let or = matches!(func.code, Code::Builtin(Builtin::Or));
            return self.emit_short_circuit(or, args, piped);
        }
        for (index, arg) in args.iter().enumerate() {
            self.emit_arg(*arg, func.param(index));
        }
        let callee = args.first().copied().unwrap_or(name);
        let site = Site { func: func.clone(), node, args: args.len(), piped, callee };
        self.program.sites.push(site);
        self.op(Op::Call((self.program.sites.len() - 1) as u32));
    }

    /// `and` and `or` evaluate only as many operands as they need.
    fn emit_short_circuit(&mut self, or: bool, args: &[NodeId], piped: bool) {
        let mut jumps = Vec::new();
        for (index, arg) in args.iter().enumerate() {
            self.emit_arg(*arg, Type::Reflect);
            if piped || index + 1 < args.len() {
                jumps.push(self.op(Op::ShortCut(or, 0)));
            }
        }
        if !piped {
            for jump in jumps {
                self.patch(jump);
            }
            return;
        }
        // The piped value is below the others. It is the result unless another one is.
        let done = self.op(Op::Jump(0));
        for jump in jumps {
            self.patch(jump);
        }
        self.op(Op::Nip);
        self.patch(done);
    }
}

/// The complaint about a wrong number of operands.
pub(crate) fn wrong_count(
    name: &str,
    params: usize,
    variadic: bool,
    args: usize,
    piped: bool,
) -> Option<String> {
    let given = args + usize::from(piped);
    if variadic {
        let least = params - 1;
        // The message does not count the piped value, although the check does.
        return (given < least)
            .then(|| format!("wrong number of args for {name}: want at least {least} got {args}"));
    }
    (given != params).then(|| format!("wrong number of args for {name}: want {params} got {given}"))
}

/// The constant that a node is.
pub(crate) fn constant_of(kind: &NodeKind) -> Option<Constant<'_>> {
    match kind {
        NodeKind::Bool(flag) => Some(Constant::Bool(*flag)),
        NodeKind::Number(number) => Some(Constant::Number(number)),
        NodeKind::Str { text, .. } => Some(Constant::Str(text)),
        _ => None,
    }
}
