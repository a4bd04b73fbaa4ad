// A component in C, without a C library and without the host's own WIT: what any toolchain could make. The functions are
// the core forms of those in `wit/shapes.wit` under the canonical ABI.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
#define EXPORT(name) __attribute__((export_name(name)))

// An instance serves one call, so memory is only ever taken.
extern u8 __heap_base;
static u32 next;

EXPORT("cabi_realloc")
void *cabi_realloc(void *old, u32 old_size, u32 align, u32 size) {
    if (next == 0) next = (u32)&__heap_base;
    u32 start = (next + align - 1) & ~(align - 1);
    u32 end = start + size;
    if (end < start) __builtin_trap();
    u32 have = __builtin_wasm_memory_size(0) << 16;
    if (end > have && __builtin_wasm_memory_grow(0, (end - have + 0xffff) >> 16) == (__SIZE_TYPE__)-1) __builtin_trap();
    next = end;
    u8 *to = (u8 *)start, *from = old;
    for (u32 i = 0; i < old_size && i < size; i++) to[i] = from[i];
    return to;
}

typedef struct { double x, y; } point;
typedef struct { void *at; u32 length; } list;
typedef struct { u8 is_error; union { double value; list text; }; } result;

static list returned_list;
static result returned_result;

EXPORT("shapes:flat/area@1.2.0#scale")
list *scale(point *points, u32 length, double by) {
    for (u32 i = 0; i < length; i++) points[i].x *= by, points[i].y *= by;
    returned_list = (list){points, length};
    return &returned_list;
}

static result *failed(const char *text) {
    u32 length = 0;
    while (text[length]) length++;
    returned_result = (result){1, {.text = {(void *)text, length}}};
    return &returned_result;
}

// A shape is flat: its case, and the payloads of all cases in the same two places.
EXPORT("shapes:flat/area@1.2.0#area")
result *area(u32 shape, u64 first, u32 second) {
    union { u64 bits; double number; } radius = {first};
    double sum = 0;
    switch (shape) {
    case 0:
        if (radius.number < 0) return failed("a circle has no negative radius");
        sum = 3.141592653589793 * radius.number * radius.number;
        break;
    case 1: {
        point *points = (point *)(u32)first;
        if (second < 3) return failed("a polygon has three points or more");
        for (u32 i = 0; i < second; i++) {
            point a = points[i], b = points[(i + 1) % second];
            sum += a.x * b.y - b.x * a.y;
        }
        sum = (sum < 0 ? -sum : sum) / 2;
        break;
    }
    }
    returned_result = (result){0, {.value = sum}};
    return &returned_result;
}

static u32 write_number(u8 *to, double number) {
    u32 length = 0, digits = 0;
    if (number < 0) to[length++] = '-', number = -number;
    u64 whole = number < 9e18 ? (u64)number : 9000000000000000000ull;
    u8 reversed[20];
    do reversed[digits++] = '0' + whole % 10; while (whole /= 10);
    while (digits) to[length++] = reversed[--digits];
    return length;
}

EXPORT("shapes:flat/area@1.2.0#label")
list *label(u8 *name, u32 length, double x, double y) {
    u8 *text = cabi_realloc(0, 0, 1, length + 64);
    u32 end = 0;
    while (end < length) text[end] = name[end], end++;
    text[end++] = ' ', text[end++] = '(';
    end += write_number(text + end, x);
    text[end++] = ',', text[end++] = ' ';
    end += write_number(text + end, y);
    text[end++] = ')';
    returned_list = (list){text, end};
    return &returned_list;
}
