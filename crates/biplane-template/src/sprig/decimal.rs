//! Arithmetic on doubles in exact decimals, like `shopspring/decimal`.

use num_bigint::{BigInt, Sign};

use super::args::any;
use super::cast::to_float64;
use crate::func::{Call, Failure, Func};
use crate::types::Type;
use crate::value::Value;

/// The digits of a quotient after the point.
const PRECISION: i32 = 16;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

pub(super) fn functions() -> Vec<Func> {
    const ANY: &[Type] = &[Type::Any];
    const TWO: &[Type] = &[Type::Any, Type::Any];
    vec![
        Func::new("add1f", ANY, Type::Float64, |call, args| {
            fold(call, to_float64(any(args, 0)), &[Value::int(1)], Operation::Add)
        }),
        Func::variadic("addf", ANY, Type::Float64, |call, args| {
            fold(call, 0.0, args, Operation::Add)
        }),
        Func::variadic("subf", TWO, Type::Float64, |call, args| {
            from_first(call, args, Operation::Subtract)
        }),
        Func::variadic("mulf", TWO, Type::Float64, |call, args| {
            from_first(call, args, Operation::Multiply)
        }),
        Func::variadic("divf", TWO, Type::Float64, |call, args| {
            from_first(call, args, Operation::Divide)
        }),
    ]
}

fn from_first(call: &mut Call<'_>, args: &[Value], run: Operation) -> Result<Value, Failure> {
    fold(call, to_float64(any(args, 0)), args.get(1..).unwrap_or_default(), run)
}

fn fold(call: &mut Call<'_>, first: f64, rest: &[Value], run: Operation) -> Result<Value, Failure> {
    call.spend(rest.len() as u64)?;
    let mut total = Decimal::from_float(first)?;
    for value in rest {
        total = run.on(&total, &Decimal::from_float(to_float64(value))?)?;
    }
    Ok(total.to_float().into())
}

/// A whole number times a power of ten.
#[derive(Clone, Debug)]
struct Decimal {
    value: BigInt,
    exponent: i32,
}

impl Decimal {
    /// The shortest decimal that reads back as the same double.
    fn from_float(number: f64) -> Result<Self, Failure> {
        let text = biplane_go::num::format_general(number);
        if !number.is_finite() {
            return Err(Failure::new(format!("Cannot create a Decimal from {text}")));
        }
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let digits = mantissa.replace('.', "");
        let value = digits.parse().unwrap_or_default();
        Ok(Self { value, exponent: exponent - i32::try_from(decimals).unwrap_or(0) })
    }

    fn to_float(&self) -> f64 {
        format!("{}e{}", self.value, self.exponent).parse().unwrap_or(0.0)
    }

    /// The whole number at a smaller exponent.
    fn at(&self, exponent: i32) -> BigInt {
        &self.value * ten(self.exponent - exponent)
    }
}

fn ten(exponent: i32) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent).unwrap_or(0))
}

impl Operation {
    fn on(self, a: &Decimal, b: &Decimal) -> Result<Decimal, Failure> {
        let exponent = a.exponent.min(b.exponent);
        Ok(match self {
            Self::Add => Decimal { value: a.at(exponent) + b.at(exponent), exponent },
            Self::Subtract => Decimal { value: a.at(exponent) - b.at(exponent), exponent },
            Self::Multiply => {
                Decimal { value: &a.value * &b.value, exponent: a.exponent + b.exponent }
            }
            Self::Divide => return divide(a, b),
        })
    }
}

/// The quotient with sixteen digits after the point, half away from zero.
fn divide(a: &Decimal, b: &Decimal) -> Result<Decimal, Failure> {
    if b.value.sign() == Sign::NoSign {
        return Err(Failure::new("decimal division by 0"));
    }
    let shift = a.exponent - b.exponent + PRECISION;
    let (dividend, divisor) = if shift < 0 {
        (a.value.clone(), &b.value * ten(-shift))
    } else {
        (&a.value * ten(shift), b.value.clone())
    };
    let (sign, dividend, divisor) =
        (dividend.sign() * divisor.sign(), dividend.magnitude(), divisor.magnitude());
    let (mut quotient, rest) = (dividend / divisor, dividend % divisor);
    if rest * 2_u8 >= *divisor {
        quotient += 1_u8;
    }
    let sign = if sign == Sign::Minus { Sign::Minus } else { Sign::Plus };
    Ok(Decimal { value: BigInt::from_biguint(sign, quotient), exponent: -PRECISION })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_in_decimals() {
        let run = |operation: Operation, a: f64, b: f64| {
            let (a, b) = (Decimal::from_float(a).unwrap(), Decimal::from_float(b).unwrap());
            operation.on(&a, &b).unwrap().to_float()
        };
        assert_eq!(run(Operation::Add, 0.1, 0.2).to_bits(), 0.3_f64.to_bits());
        assert_eq!(run(Operation::Subtract, 0.3, 0.1).to_bits(), 0.2_f64.to_bits());
        assert_eq!(run(Operation::Multiply, 1.1, 1.1).to_bits(), 1.21_f64.to_bits());
        assert_eq!(
            run(Operation::Divide, 1.0, 3.0).to_bits(),
            0.333_333_333_333_333_3_f64.to_bits()
        );
        assert_eq!(
            run(Operation::Divide, -2.0, 3.0).to_bits(),
            (-0.666_666_666_666_666_7_f64).to_bits()
        );
        assert_eq!(run(Operation::Add, 1e300, 1e-300).to_bits(), 1e300_f64.to_bits());
    }
}
