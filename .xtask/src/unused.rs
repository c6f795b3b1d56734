//! Code that the compiler keeps and no run reaches, taken out of a module.
//!
//! The tensor library decides while it runs which of its kernels a product needs, so that the linker keeps all of them: those for
//! quantised tensors, for matrix units that WebGPU does not offer, for processors; and its intermediate representation can be read
//! from text. Here tensors are plain numbers, the device is WebGPU, and no text is read: a fifth of the module is never called.
//! Such functions are replaced by a trap, and what only they called goes with them. Should one be called after all, the engine
//! stops with an error that the page reports; the tests in the browser, on WebGPU with the reference path too, would show it. The
//! list was checked by counting calls: in runs with every objective, a critic, imitation and measured credit none of these was made.

use walrus::{FunctionBuilder, FunctionKind, Module};

/// Parts of the names of functions that are never called.
const UNUSED: &[&str] = &[
    // Quantised tensors.
    "cubecl_std::quant::",
    "cubek_quant::",
    "QTensorOps",
    "run_with_quant_type",
    "QuantizedView",
    "cubek_tile::tile::packing::",
    "PackedView",
    "transport::scaled",
    // Matrix units, bulk copies and the layouts of processors.
    "cmma_kernel::",
    "CmmaKernel",
    "instruction::mma::",
    "plane::mma::",
    "leaf::cmma::",
    "instruction::cmma::",
    "launch_ref_tma",
    "transport::async_copy::",
    "cpu_gemm::",
    // Products of numbers of other kinds on the CPU.
    "gemm_f16::",
    "gemm_f64::",
    "gemm_c32::",
    "gemm_c64::",
    // Reading the representation of kernels from text.
    "Parsable>::parse",
    "ParseMode>::parse",
    "::parse_mode",
];

/// How the names of functions begin that drop a value: what is dropped may be of a type that is declared inside an unused function,
/// and be used elsewhere.
const DROPPING: &str = "core::ptr::drop_in_place";

/// Replaces unused functions by a trap and removes what only they reach. Gives how many were replaced.
pub fn remove(module: &mut Module) -> usize {
    let unused: Vec<_> = module
        .funcs
        .iter_local()
        .filter(|(id, _)| module.funcs.get(*id).name.as_deref().is_some_and(is_unused))
        .map(|(id, function)| (id, function.ty(), function.args.clone()))
        .collect();
    for (id, ty, args) in &unused {
        let ty = module.types.get(*ty);
        let (parameters, results) = (ty.params().to_vec(), ty.results().to_vec());
        let mut trap = FunctionBuilder::new(&mut module.types, &parameters, &results);
        trap.func_body().unreachable();
        let function = module.funcs.get_mut(*id);
        function.kind = FunctionKind::Local(trap.local_func(args.clone()));
        function.name = None;
    }
    walrus::passes::gc::run(module);
    unused.len()
}

fn is_unused(name: &str) -> bool {
    !name.starts_with(DROPPING) && UNUSED.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_functions_trap_and_others_stay() {
        let mut module = Module::default();
        let mut add = |name: &str, calls: Option<walrus::FunctionId>| {
            let mut builder = FunctionBuilder::new(&mut module.types, &[], &[]);
            builder.name(name.to_string());
            if let Some(callee) = calls {
                builder.func_body().call(callee);
            }
            builder.finish(vec![], &mut module.funcs)
        };
        let helper = add("helper", None);
        let quantised = add("cubecl_std::quant::view::load", Some(helper));
        let matmul = add("cubek_matmul::launch", Some(quantised));
        module.exports.add("matmul", matmul);
        assert_eq!(remove(&mut module), 1);
        let names: Vec<_> = module.funcs.iter().filter_map(|function| function.name.clone()).collect();
        assert!(!names.contains(&"helper".to_string()), "what only an unused function called is gone: {names:?}");
        assert!(module.funcs.iter_local().any(|(id, _)| id == matmul));
        assert_eq!(remove(&mut module), 0, "once is enough");
        assert!(!is_unused("core::ptr::drop_in_place<<pliron::location::Source as pliron::parsable::Parsable>::parse::Source>"));
    }
}
