//! Bindings in C of a project's world, by the generator of `wit-bindgen`: a part of this program, so that no author installs one, and
//! made at each build, so that they are those of the WIT as it is.

use std::path::{Path, PathBuf};
use std::{fs, io};

use base::{Refusal, RefusalCode};
use wit_bindgen_c::{Opts, component_type_object};
use wit_bindgen_core::Files;
use wit_component::StringEncoding;
use wit_parser::{Resolve, WorldId};

/// The world of a project.
pub(crate) struct ProjectWorld {
    resolve: Resolve,
    world: WorldId,
}

impl ProjectWorld {
    /// Reads the world `name` from the WIT in a directory.
    ///
    /// # Errors
    /// If the WIT is invalid, with the place of the fault, or has no such world.
    pub(crate) fn read(wit: &Path, name: &str) -> Result<Self, Refusal> {
        let mut resolve = Resolve::default();
        let world = resolve.push_path(wit).and_then(|(package, _)| resolve.select_world(&[package], Some(name)));
        match world {
            Ok(world) => Ok(Self { resolve, world }),
            Err(error) => {
                // The fault and its place; the lines below them quote the source.
                let rendered = resolve.render_error(&error);
                Err(unfit(&rendered.lines().map(str::trim).take(2).collect::<Vec<_>>().join(" ")))
            }
        }
    }

    /// Writes the header and the source of the bindings, and returns the path of the source.
    ///
    /// # Errors
    /// If the generator does not know a type of the world, or a file cannot be written.
    pub(crate) fn write_c(&self, directory: &Path) -> Result<PathBuf, Refusal> {
        let mut resolve = self.resolve.clone();
        let mut files = Files::default();
        // The type of the component is added to the linked module, so its object file is left out, and only named.
        let mut generator = Opts { no_object_file: true, ..Opts::default() }.build();
        generator.generate(&mut resolve, self.world, &mut files).map_err(|error| unfit(&format!("{error:#}")))?;
        let name = resolve.worlds.get(self.world).map(|world| world.name.clone()).unwrap_or_default();
        let symbol = component_type_object::linking_symbol(&name);
        let mut source = None;
        let mut write = || -> io::Result<()> {
            fs::create_dir_all(directory)?;
            for (file, content) in files.iter() {
                let path = directory.join(file);
                let mut text = String::from_utf8_lossy(content).into_owned();
                if path.extension().is_some_and(|extension| extension == "c") {
                    // Warnings are about the author's sources.
                    text = format!(
                        "#pragma clang diagnostic ignored \"-Weverything\"\n{text}\nvoid {symbol}(void) {{}}\n"
                    );
                    source = Some(path.clone());
                }
                fs::write(path, text)?;
            }
            Ok(())
        };
        write().map_err(|error| {
            Refusal::new(RefusalCode::StorageFailed, format!("cannot write to `{}`: {error}", directory.display()))
        })?;
        source.ok_or_else(|| unfit("it has nothing to bind"))
    }

    /// Adds the world to a linked module, which can then be made a component.
    ///
    /// # Errors
    /// If the module is damaged.
    pub(crate) fn embed(&self, module: &mut Vec<u8>) -> Result<(), Refusal> {
        wit_component::embed_component_metadata(module, &self.resolve, self.world, StringEncoding::UTF8)
            .map_err(|error| Refusal::new(RefusalCode::InvalidComponent, format!("the linked module: {error:#}")))
    }
}

fn unfit(why: &str) -> Refusal {
    Refusal::new(RefusalCode::InvalidComponent, format!("the WIT of the project: {why}"))
        .with_remedy("mend the WIT, then build again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Language};

    fn bindings(kind: Kind) -> (String, tempfile::TempDir) {
        let root = tempfile::tempdir().unwrap();
        let name = skills::SkillName::parse("greeter").unwrap();
        let project = crate::create(&root.path().join("p"), kind, Language::C, &name).unwrap();
        let world = ProjectWorld::read(&project.directory.join("wit"), "project").unwrap();
        let source = world.write_c(&root.path().join("bindings")).unwrap();
        assert!(source.ends_with("bindings/project.c") && source.is_file());
        (fs::read_to_string(source.with_extension("h")).unwrap(), root)
    }

    #[test]
    fn the_world_of_each_scaffold_in_c_has_bindings() {
        for (kind, function) in [
            (Kind::Tool, "exports_motor_host_tools_call("),
            (Kind::Tool, "wasi_http_outgoing_handler_handle("),
            (Kind::Reflector, "exports_motor_host_reflection_interpret("),
            (Kind::Neuron, "exports_motor_host_reaction_tick("),
        ] {
            let (header, _root) = bindings(kind);
            assert!(header.contains(function), "{kind:?}: {function}");
        }
    }

    #[test]
    fn a_fault_in_the_wit_is_named_with_its_place() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("project.wit"), "package a:b;\nworld project {\n  import nowhere;\n}\n").unwrap();
        let refused = ProjectWorld::read(root.path(), "project").err().unwrap();
        assert!(refused.reason.contains("nowhere") && refused.reason.contains("project.wit:3"), "{refused:?}");
        fs::write(root.path().join("project.wit"), "package a:b;\nworld other {}\n").unwrap();
        assert!(ProjectWorld::read(root.path(), "project").err().unwrap().reason.contains("project"));
    }
}
