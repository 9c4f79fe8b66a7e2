//! A compiled template: nodes for messages, and instructions to run.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::func::Func;
use crate::literal::{Literal, Number};
use crate::types::Type;
use crate::value::Text;

/// The number of a node.
pub(crate) type NodeId = u32;
/// The number of an instruction of the same template.
pub(crate) type Target = u32;
/// The number of a variable name.
pub(crate) type Symbol = u32;

/// The variable `$`, which every template has.
pub(crate) const ROOT: Symbol = 0;

/// A part of a template that an error can point at.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) pos: usize,
    pub(crate) kind: NodeKind,
}

#[derive(Clone, Debug)]
pub(crate) enum NodeKind {
    Pipe {
        names: Vec<String>,
        assign: bool,
        commands: Vec<NodeId>,
    },
    Command(Vec<NodeId>),
    Field(Vec<String>),
    /// A variable, with its dollar sign, and fields.
    Variable(Vec<String>),
    Chain(NodeId, Vec<String>),
    Identifier(Arc<Func>),
    Dot,
    Nil,
    Bool(bool),
    Number(Number),
    Str {
        quoted: String,
        text: Text,
    },
    Action(NodeId),
    Template {
        name: String,
        pipe: Option<NodeId>,
    },
}

/// A call of a function.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) func: Arc<Func>,
    /// What a failed call points at.
    pub(crate) node: NodeId,
    pub(crate) args: usize,
    /// Whether a value comes through the pipe.
    pub(crate) piped: bool,
    /// The first operand as written, which `call` needs for messages.
    pub(crate) callee: NodeId,
}

/// The last step of a chain that has operands or gets a value through the pipe.
#[derive(Clone, Debug)]
pub(crate) struct MethodSite {
    pub(crate) name: u32,
    pub(crate) node: NodeId,
    pub(crate) args: usize,
    pub(crate) piped: bool,
    /// Where to go if there is nothing to call.
    pub(crate) skip: Target,
}

/// The start of a loop.
#[derive(Clone, Debug)]
pub(crate) struct RangeSite {
    pub(crate) names: Vec<Symbol>,
    pub(crate) assign: bool,
    pub(crate) otherwise: Target,
}

/// An instruction. Values are on a stack.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Marks where errors happen.
    At(NodeId),
    /// Writes a part of the source.
    Text(u32, u32),
    Print(NodeId),
    Pop,
    /// Removes the value below the top.
    Nip,
    Const(u32),
    /// The absence of a value.
    Nothing,
    Dot,
    Var(Symbol),
    Field(u32, NodeId),
    Method(u32),
    MethodConst(NodeId, u32),
    MethodNil(u32),
    MethodCheck(u32),
    MethodCall(u32),
    /// Checks that the value fits a parameter.
    Check(u32),
    /// Jumps if the truth of the value is this, else drops the value.
    ShortCut(bool, Target),
    Jump(Target),
    Call(u32),
    Unbox,
    Declare(Symbol),
    Assign(Symbol),
    Mark,
    Unmark,
    Branch(Target),
    With(Target),
    PopDot,
    Range(u32),
    Next(u32, Target),
    Break,
    /// Checks that a template can be called, before its argument is evaluated.
    Lookup(u32, NodeId),
    Invoke(u32),
    Fail(u32),
}

/// A named template.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub(crate) name: String,
    pub(crate) ops: Vec<Op>,
    /// Whether there is nothing but white space.
    pub(crate) empty: bool,
}

/// About the bytes of a small list or text.
const SMALL: usize = 64;

/// A set of templates from one text.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// The name of the text, which is that of its main template.
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) nodes: Vec<Node>,
    pub(crate) templates: Vec<Code>,
    pub(crate) by_name: BTreeMap<String, usize>,
    pub(crate) consts: Vec<Literal>,
    pub(crate) names: Vec<String>,
    pub(crate) symbols: Vec<String>,
    pub(crate) types: Vec<Type>,
    pub(crate) sites: Vec<Site>,
    pub(crate) methods: Vec<MethodSite>,
    pub(crate) ranges: Vec<RangeSite>,
    pub(crate) messages: Vec<String>,
}

impl Program {
    /// About how many bytes the program takes.
    pub(crate) fn size(&self) -> usize {
        let instructions: usize = self.templates.iter().map(|code| code.ops.len()).sum();
        // Texts and names are parts of the source. They are in nodes, constants and messages.
        self.source.len() * 4
            + self.nodes.len() * (size_of::<Node>() + SMALL)
            + instructions * size_of::<Op>()
            + self.templates.len() * (size_of::<Code>() + SMALL)
            + self.consts.len() * size_of::<Literal>()
            + (self.names.len() + self.symbols.len() + self.messages.len()) * SMALL
            + self.types.len() * size_of::<Type>()
            + self.sites.len() * size_of::<Site>()
            + self.methods.len() * size_of::<MethodSite>()
            + self.ranges.len() * (size_of::<RangeSite>() + SMALL)
    }

    pub(crate) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id as usize)
    }

    /// A node as it would be written.
    pub(crate) fn show(&self, id: NodeId) -> String {
        let mut out = String::new();
        self.write(&mut out, id);
        out
    }

    fn write(&self, out: &mut String, id: NodeId) {
        let Some(node) = self.node(id) else { return };
        match &node.kind {
            NodeKind::Pipe { names, assign, commands } => {
                if !names.is_empty() {
                    out.push_str(&names.join(", "));
                    out.push_str(if *assign { " = " } else { " := " });
                }
                for (index, command) in commands.iter().enumerate() {
                    if index > 0 {
                        out.push_str(" | ");
                    }
                    self.write(out, *command);
                }
            }
            NodeKind::Command(operands) => {
                for (index, operand) in operands.iter().enumerate() {
                    if index > 0 {
                        out.push(' ');
                    }
                    self.write_operand(out, *operand);
                }
            }
            NodeKind::Field(names) => {
                for name in names {
                    out.push('.');
                    out.push_str(name);
                }
            }
            NodeKind::Variable(names) => out.push_str(&names.join(".")),
            NodeKind::Chain(inner, names) => {
                self.write_operand(out, *inner);
                for name in names {
                    out.push('.');
                    out.push_str(name);
                }
            }
            NodeKind::Identifier(func) => out.push_str(func.name),
            NodeKind::Dot => out.push('.'),
            NodeKind::Nil => out.push_str("nil"),
            NodeKind::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
            NodeKind::Number(number) => out.push_str(&number.text),
            NodeKind::Str { quoted, .. } => out.push_str(quoted),
            NodeKind::Action(pipe) => {
                out.push_str("{{");
                self.write(out, *pipe);
                out.push_str("}}");
            }
            NodeKind::Template { name, pipe } => {
                out.push_str("{{template ");
                out.push_str(&biplane_go::fmt::quote(name));
                if let Some(pipe) = pipe {
                    out.push(' ');
                    self.write(out, *pipe);
                }
                out.push_str("}}");
            }
        }
    }

    /// A pipeline in a command is in parentheses.
    fn write_operand(&self, out: &mut String, id: NodeId) {
        let pipe = matches!(self.node(id).map(|n| &n.kind), Some(NodeKind::Pipe { .. }));
        if pipe {
            out.push('(');
        }
        self.write(out, id);
        if pipe {
            out.push(')');
        }
    }
}
