//! Claims that its answer is a string of 4 GiB less one byte: the ABI takes any pointer and length from a guest, and a
//! host must check them against the guest's memory before it reserves or reads anything.

// The answers are written by hand: generated code can only return strings that exist.
#![allow(unsafe_code)]

use motor_sdk::{Context, Tool, ToolError, Toolset};

motor_sdk::arguments! {
    struct Nothing {}
}

struct Component;

impl Toolset for Component {
    fn tools() -> Vec<Tool> {
        let never = |_arguments: Nothing, _context: &Context| Err(ToolError::failed("the export does not come here"));
        [
            ("fake_huge_output", "Claims an output of 4 GiB."),
            ("fake_output_out_of_bounds", "Claims an output that begins behind the memory."),
            ("fake_huge_error", "Claims an error of 4 GiB."),
            ("not_utf8", "Gives an output that is not UTF-8."),
            ("unaligned", "Gives a result at an odd address."),
            ("wrong_case", "Gives a result that is neither one nor an error."),
        ]
        .map(|(name, description)| Tool::new(name, description, never).read_only())
        .into()
    }
}

/// A `result<tool-output, tool-error>` as the canonical ABI lays it out: the case, then that of the error or the
/// pointer of the output, and so on.
#[repr(C, align(8))]
struct Answer([u32; 6]);

/// Stands where the generated exports look for generated code, with a `call` of its own.
mod forged {
    pub(crate) mod exports {
        pub(crate) mod motor {
            pub(crate) mod host {
                pub(crate) mod tools {
                    pub(crate) use crate::{__post_return_call, _export_call_cabi};
                    pub(crate) use motor_sdk::bindings::exports::motor::host::tools::{
                        __export_motor_host_tools_0_1_2_cabi, __post_return_list, _export_list_cabi,
                    };
                }
            }
        }
    }
}

motor_sdk::bindings::export!(Component with_types_in forged);

/// The lowered arguments of the export; only the name matters.
#[expect(clippy::too_many_arguments, reason = "the canonical ABI flattens records")]
#[expect(clippy::extra_unused_type_parameters, reason = "the export names the component here")]
unsafe fn _export_call_cabi<T>(
    name: *mut u8,
    name_length: usize,
    _arguments: *mut u8,
    _arguments_length: usize,
    _run: *mut u8,
    _run_length: usize,
    _step: i32,
    _deadline: i64,
    _key: *mut u8,
    _key_length: usize,
) -> *mut u8 {
    static NOT_UTF8: [u8; 4] = [0xff, 0xfe, 0xc0, 0x80];
    // SAFETY: the host has just written the name there.
    let name = unsafe { std::slice::from_raw_parts(name, name_length) };
    let somewhere = name.as_ptr() as u32;
    let (fields, shift) = match name {
        b"fake_output_out_of_bounds" => ([0, 0xffff_fff0, 16, 0, 0, 0], 0),
        b"fake_huge_error" => ([1, 2, somewhere, u32::MAX, 0, 0], 0),
        b"not_utf8" => ([0, NOT_UTF8.as_ptr() as u32, 4, 0, 0, 0], 0),
        b"unaligned" => ([0, somewhere, 1, 0, 0, 0], 1),
        b"wrong_case" => ([7, somewhere, 1, 0, 0, 0], 0),
        _ => ([0, somewhere, u32::MAX, 0, 0, 0], 0),
    };
    Box::into_raw(Box::new(Answer(fields))).cast::<u8>().wrapping_add(shift)
}

/// Nothing that was forged can be freed.
unsafe fn __post_return_call<T>(_answer: *mut u8) {}
