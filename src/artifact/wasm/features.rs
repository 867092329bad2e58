//! To which proposal an instruction belongs.

use wasmparser::Operator;

macro_rules! proposals {
    ($( @$proposal:ident $name:ident $({ $($field:ident: $type:ty),* })? => $visit:ident ($($rest:tt)*) )*) => {
        /// The proposal that brought `operator`, unless the first version of WebAssembly has it.
        pub(super) fn proposal(operator: &Operator<'_>) -> Option<&'static str> {
            let name = match operator {
                $( Operator::$name $({ $($field: _),* })? => stringify!($proposal), )*
                _ => return Some("unknown"),
            };
            (name != "mvp").then_some(name)
        }
    };
}

wasmparser::for_each_operator!(proposals);
