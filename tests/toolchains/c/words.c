// The tool `count` in C, over the bindings that `wit-bindgen c` generated from `../wit` (world `text`).
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

// Otherwise an object file that `wit-bindgen c` makes as well: `wasm-tools component embed` adds the type instead.
void __component_type_object_force_link_text(void) {}

static int by_count(const void *a, const void *b) {
    const text_tuple2_string_u32_t *x = a, *y = b;
    if (x->f1 != y->f1) return x->f1 < y->f1 ? 1 : -1;
    size_t shorter = x->f0.len < y->f0.len ? x->f0.len : y->f0.len;
    int order = memcmp(x->f0.ptr, y->f0.ptr, shorter);
    return order ? order : (int)x->f0.len - (int)y->f0.len;
}

bool exports_toolchains_text_words_count(text_string_t *text, text_list_tuple2_string_u32_t *ret, text_string_t *err) {
    size_t capacity = 0;
    *ret = (text_list_tuple2_string_u32_t){0};
    for (size_t at = 0; at < text->len;) {
        size_t start = at;
        while (at < text->len && isalnum(text->ptr[at])) text->ptr[at] = (uint8_t)tolower(text->ptr[at]), at++;
        if (at == start) { at++; continue; }
        size_t length = at - start, found = 0;
        while (found < ret->len && !(ret->ptr[found].f0.len == length && !memcmp(ret->ptr[found].f0.ptr, text->ptr + start, length))) found++;
        if (found == ret->len) {
            if (ret->len == capacity) ret->ptr = realloc(ret->ptr, (capacity = capacity * 2 + 8) * sizeof *ret->ptr);
            ret->ptr[ret->len++] = (text_tuple2_string_u32_t){.f1 = 0};
            text_string_dup_n(&ret->ptr[found].f0, (const char *)text->ptr + start, length);
        }
        ret->ptr[found].f1++;
    }
    if (!ret->len) { text_string_dup(err, "there are no words"); return false; }
    qsort(ret->ptr, ret->len, sizeof *ret->ptr, by_count);
    return true;
}
