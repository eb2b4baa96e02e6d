//! Return types.

use syn::{GenericArgument, Path, PathArguments, ReturnType, Type, TypeParamBound};

/// Returns the output of the future that a return type names: `impl Future<Output = T>`,
/// `Pin<Box<dyn Future<Output = T>>>`, `BoxFuture<'_, T>`.
pub(super) fn of_future(output: &ReturnType) -> Option<&Type> {
    match output {
        ReturnType::Type(_, ty) => of_type(ty),
        ReturnType::Default => None,
    }
}

fn of_type(ty: &Type) -> Option<&Type> {
    match ty {
        Type::Group(group) => of_type(&group.elem),
        Type::Paren(paren) => of_type(&paren.elem),
        Type::ImplTrait(future) => of_bounds(future.bounds.iter()),
        Type::TraitObject(future) => of_bounds(future.bounds.iter()),
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
            let types = || {
                arguments.args.iter().filter_map(|argument| match argument {
                    GenericArgument::Type(ty) => Some(ty),
                    _ => None,
                })
            };
            let is_alias = last.ident == "BoxFuture" || last.ident == "LocalBoxFuture";
            if is_alias { types().next_back() } else { types().find_map(of_type) }
        }
        _ => None,
    }
}

fn of_bounds<'a>(mut bounds: impl Iterator<Item = &'a TypeParamBound>) -> Option<&'a Type> {
    bounds.find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else { return None };
        let PathArguments::AngleBracketed(arguments) = &bound.path.segments.last()?.arguments else {
            return None;
        };
        arguments.args.iter().find_map(|argument| match argument {
            GenericArgument::AssocType(output) if output.ident == "Output" => Some(&output.ty),
            _ => None,
        })
    })
}

/// Returns whether a return type is written as a future itself, and not as something that holds one.
pub(super) fn is_future(output: &ReturnType) -> bool {
    fn of_trait<'a>(mut bounds: impl Iterator<Item = &'a TypeParamBound>) -> bool {
        bounds
            .any(|bound| matches!(bound, TypeParamBound::Trait(bound) if is_named(&bound.path, &["Future"])))
    }
    fn is_named(path: &Path, names: &[&str]) -> bool {
        path.segments.last().is_some_and(|last| names.iter().any(|name| last.ident == name))
    }
    fn of(ty: &Type) -> bool {
        match ty {
            Type::Group(group) => of(&group.elem),
            Type::Paren(paren) => of(&paren.elem),
            Type::ImplTrait(future) => of_trait(future.bounds.iter()),
            Type::TraitObject(future) => of_trait(future.bounds.iter()),
            Type::Path(path) if is_named(&path.path, &["Pin", "Box"]) => {
                let arguments = path.path.segments.last().map(|last| &last.arguments);
                let Some(PathArguments::AngleBracketed(arguments)) = arguments else { return false };
                arguments.args.iter().any(|argument| matches!(argument, GenericArgument::Type(ty) if of(ty)))
            }
            // `Self::Future` of a `tower::Service`.
            Type::Path(path) => is_named(&path.path, &["BoxFuture", "LocalBoxFuture", "Future"]),
            _ => false,
        }
    }
    matches!(output, ReturnType::Type(_, ty) if of(ty))
}

/// Replaces every `impl Trait` by `_`.
pub(super) fn infer_impl_trait(ty: &mut Type) {
    match ty {
        Type::ImplTrait(_) => {
            *ty = Type::Infer(syn::TypeInfer { attrs: Vec::new(), underscore_token: Default::default() })
        }
        Type::Array(array) => infer_impl_trait(&mut array.elem),
        Type::Group(group) => infer_impl_trait(&mut group.elem),
        Type::Paren(paren) => infer_impl_trait(&mut paren.elem),
        Type::Ptr(pointer) => infer_impl_trait(&mut pointer.elem),
        Type::Reference(reference) => infer_impl_trait(&mut reference.elem),
        Type::Slice(slice) => infer_impl_trait(&mut slice.elem),
        Type::Tuple(tuple) => tuple.elems.iter_mut().for_each(infer_impl_trait),
        Type::Path(path) => infer_in_path(&mut path.path),
        Type::TraitObject(object) => {
            for bound in &mut object.bounds {
                if let TypeParamBound::Trait(bound) = bound {
                    infer_in_path(&mut bound.path);
                }
            }
        }
        _ => {}
    }
}

fn infer_in_path(path: &mut Path) {
    for segment in &mut path.segments {
        let PathArguments::AngleBracketed(arguments) = &mut segment.arguments else { continue };
        for argument in &mut arguments.args {
            match argument {
                GenericArgument::Type(ty) => infer_impl_trait(ty),
                GenericArgument::AssocType(associated) => infer_impl_trait(&mut associated.ty),
                _ => {}
            }
        }
    }
}
