#!/bin/sh
# Compiles a crate of the workspace for the fuzzer: with counters at each edge and comparison, which libFuzzer follows. Only
# these crates, and not their dependencies, so that the engine is not built again. What runs while building is left alone: it has
# no fuzzer that could take the counters.
case " $* " in
*" --crate-name build_script_"* | *" --crate-type proc-macro "* | *" --print"*) exec "$@" ;;
esac
exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions=on
