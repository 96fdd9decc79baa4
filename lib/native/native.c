// See native.h. In order: sections are given places in one mapping (code, then read-only data with the table of addresses),
// copied, relocated, and the mapping is closed for writing.
#include "native/native.h"
#include "math/math.h"
#include <elf.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct lf_native {
    const lf_allocator *allocator;
    void *base;
    size_t bytes;
};

typedef void (*import_function)(void);
typedef struct import {
    const char *name;
    import_function function, with_fma; // the same bits; with_fma for processors that have the instruction
} import;
// lib/math as it was compiled for x86-64-v3.
#define LF_IMPORT_C(name)
#define LF_IMPORT_MATH(name) void v3_##name(void);
#include "native/imports.def"
#undef LF_IMPORT_C
#undef LF_IMPORT_MATH
static const import imports[] = {
#define LF_IMPORT_C(name) {#name, (import_function)name, (import_function)name},
#define LF_IMPORT_MATH(name) {#name, (import_function)name, v3_##name},
#include "native/imports.def"
#undef LF_IMPORT_C
#undef LF_IMPORT_MATH
};
enum { N_IMPORTS = sizeof imports / sizeof *imports };

static const import *find_import(const char *name, size_t length) {
    for (size_t i = 0; i < N_IMPORTS; i++)
        if (strlen(imports[i].name) == length && memcmp(imports[i].name, name, length) == 0) return &imports[i];
    return NULL;
}

static bool has_fma(void) { return __builtin_cpu_supports("x86-64-v3"); }

bool lf_native_imports(const char *name, size_t length) { return find_import(name, length); }

enum { MOST_SECTIONS = 4096, STUB_BYTES = 16 };

typedef struct loading {
    const lf_allocator *a;
    const uint8_t *object;
    size_t size;
    const Elf64_Shdr *sections;
    uint32_t n_sections;
    const Elf64_Sym *symbols;
    uint32_t n_symbols;
    const char *names; // of symbols
    size_t names_bytes;
    uint64_t *place;                            // by section: offset in the mapping, NOWHERE for what is not loaded
    size_t code_bytes, all_bytes, stubs, table; // of the mapping, in bytes; stubs and table: a place a symbol
    uint8_t *base;
} loading;
static const uint64_t NOWHERE = UINT64_MAX;

static lf_status refuse(const loading *l, const char *what) { return lf_error(l->a, LF_INTERNAL, "loading code: %s", what); }

// ---- reading the object --------------------------------------------------------------------------------------------------------

static bool inside(const loading *l, uint64_t offset, uint64_t bytes) {
    return offset <= l->size && bytes <= l->size - offset;
}

static lf_status read_header(loading *l) {
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)(const void *)l->object;
    if (l->size < sizeof *h || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
        h->e_type != ET_REL || h->e_machine != EM_X86_64)
        return refuse(l, "not a relocatable x86-64 object");
    if (h->e_shentsize != sizeof(Elf64_Shdr) || !h->e_shnum || h->e_shnum > MOST_SECTIONS || h->e_shoff % 8 ||
        !inside(l, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)))
        return refuse(l, "the object is cut short (section headers)");
    l->sections = (const Elf64_Shdr *)(const void *)(l->object + h->e_shoff);
    l->n_sections = h->e_shnum;
    for (uint32_t i = 0; i < l->n_sections; i++) {
        const Elf64_Shdr *s = &l->sections[i];
        if (s->sh_type != SHT_NOBITS && s->sh_type != SHT_NULL && !inside(l, s->sh_offset, s->sh_size))
            return refuse(l, "the object is cut short (a section)");
        if (s->sh_type != SHT_SYMTAB) continue;
        if (s->sh_entsize != sizeof(Elf64_Sym) || s->sh_offset % 8 || s->sh_link >= l->n_sections ||
            s->sh_size / sizeof(Elf64_Sym) > UINT32_MAX)
            return refuse(l, "a bad symbol table");
        const Elf64_Shdr *names = &l->sections[s->sh_link];
        if (names->sh_type != SHT_STRTAB || !names->sh_size || !inside(l, names->sh_offset, names->sh_size) ||
            l->object[names->sh_offset + names->sh_size - 1])
            return refuse(l, "a bad table of names");
        l->symbols = (const Elf64_Sym *)(const void *)(l->object + s->sh_offset);
        l->n_symbols = (uint32_t)(s->sh_size / sizeof(Elf64_Sym));
        l->names = (const char *)l->object + names->sh_offset;
        l->names_bytes = names->sh_size;
    }
    return l->symbols ? NULL : refuse(l, "the object has no symbols");
}

// ---- places --------------------------------------------------------------------------------------------------------------------

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }
static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

static bool is_loaded(const Elf64_Shdr *s) {
    // Unwind tables are for exceptions, which this code neither throws nor lets through.
    return s->sh_flags & SHF_ALLOC && s->sh_size && s->sh_type != SHT_X86_64_UNWIND;
}

static lf_status place_sections(loading *l, bool code, size_t *at) {
    for (uint32_t i = 0; i < l->n_sections; i++) {
        const Elf64_Shdr *s = &l->sections[i];
        if (!is_loaded(s) || !(s->sh_flags & SHF_EXECINSTR) != !code) continue;
        if (s->sh_flags & (SHF_WRITE | SHF_TLS) || s->sh_type != SHT_PROGBITS)
            return refuse(l, "the object has writable data");
        size_t align = s->sh_addralign ? s->sh_addralign : 1;
        if (align > 4096 || (align & (align - 1))) return refuse(l, "a section wants an alignment that is not offered");
        *at = round_up(*at, align);
        l->place[i] = *at;
        *at += s->sh_size;
    }
    return NULL;
}

static lf_status place_all(loading *l) {
    size_t page = page_bytes(), at = 0;
    if (l->size > INT32_MAX / 4) return refuse(l, "the object is too large");
    LF_TRY(place_sections(l, true, &at));
    l->stubs = round_up(at, STUB_BYTES);
    l->code_bytes = round_up(l->stubs + (size_t)l->n_symbols * STUB_BYTES, page);
    at = l->code_bytes;
    LF_TRY(place_sections(l, false, &at));
    l->table = round_up(at, 8);
    l->all_bytes = round_up(l->table + (size_t)l->n_symbols * 8, page);
    return NULL;
}

// ---- symbols -------------------------------------------------------------------------------------------------------------------

static const char *name_of(const loading *l, const Elf64_Sym *s) {
    return s->st_name < l->names_bytes ? l->names + s->st_name : "";
}

// The address of a symbol, or of the import of that name.
static lf_status address_of(const loading *l, uint32_t index, uint64_t *out) {
    *out = 0;
    if (index >= l->n_symbols) return refuse(l, "a relocation names no symbol");
    const Elf64_Sym *s = &l->symbols[index];
    if (s->st_shndx == SHN_UNDEF) {
        const char *name = name_of(l, s);
        const import *f = find_import(name, strlen(name));
        if (!f) return lf_error(l->a, LF_INTERNAL, "loading code: it wants '%s', which is not offered", name);
        *out = (uint64_t)(uintptr_t)(has_fma() ? f->with_fma : f->function);
        return NULL;
    }
    if (s->st_shndx >= l->n_sections || l->place[s->st_shndx] == NOWHERE || s->st_value > l->sections[s->st_shndx].sh_size)
        return refuse(l, "a symbol lies in no loaded section");
    *out = (uint64_t)(uintptr_t)l->base + l->place[s->st_shndx] + s->st_value;
    return NULL;
}

// The symbol's place in the table of addresses.
static uint64_t table_entry(const loading *l, uint32_t index, uint64_t address) {
    uint8_t *at = l->base + l->table + (size_t)index * 8;
    memcpy(at, &address, 8);
    return (uint64_t)(uintptr_t)at;
}

// A function outside may be more than 2 GB away: jmp *entry(%rip) in a place of our own.
static uint64_t stub(const loading *l, uint32_t index, uint64_t address) {
    static const uint8_t jump[6] = {0xff, 0x25};
    uint8_t *at = l->base + l->stubs + (size_t)index * STUB_BYTES;
    uint64_t entry = table_entry(l, index, address);
    int32_t distance = (int32_t)(int64_t)(entry - ((uint64_t)(uintptr_t)at + sizeof jump));
    memcpy(at, jump, 2);
    memcpy(at + 2, &distance, 4);
    return (uint64_t)(uintptr_t)at;
}

// ---- relocations ---------------------------------------------------------------------------------------------------------------

static lf_status relocate(const loading *l, const Elf64_Shdr *target, uint64_t place, const Elf64_Rela *r) {
    uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info), index = (uint32_t)ELF64_R_SYM(r->r_info);
    uint64_t value;
    if (type == R_X86_64_NONE) return NULL;
    LF_TRY(address_of(l, index, &value));
    bool outside = l->symbols[index].st_shndx == SHN_UNDEF;
    bool wide = type == R_X86_64_64 || type == R_X86_64_PC64;
    size_t bytes = wide ? 8 : 4;
    if (r->r_offset > target->sh_size || bytes > target->sh_size - r->r_offset)
        return refuse(l, "a relocation lies outside of its section");
    uint8_t *at = l->base + place + r->r_offset;
    uint64_t here = (uint64_t)(uintptr_t)at;
    switch (type) {
    case R_X86_64_64: value += (uint64_t)r->r_addend; break;
    case R_X86_64_PC64: value += (uint64_t)r->r_addend - here; break;
    case R_X86_64_PLT32:
    case R_X86_64_PC32:
        if (outside) value = stub(l, index, value);
        value += (uint64_t)r->r_addend - here;
        break;
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: value = table_entry(l, index, value) + (uint64_t)r->r_addend - here; break;
    default: return lf_error(l->a, LF_INTERNAL, "loading code: relocations of type %u are not known", type);
    }
    if (!wide && (int64_t)value != (int32_t)(int64_t)value) return refuse(l, "a relocation does not reach");
    memcpy(at, &value, bytes);
    return NULL;
}

static lf_status relocate_all(const loading *l) {
    for (uint32_t i = 0; i < l->n_sections; i++) {
        const Elf64_Shdr *s = &l->sections[i];
        if (s->sh_type == SHT_REL) return refuse(l, "relocations without addends are not known");
        if (s->sh_type != SHT_RELA || s->sh_info >= l->n_sections || l->place[s->sh_info] == NOWHERE) continue;
        if (s->sh_entsize != sizeof(Elf64_Rela) || s->sh_offset % 8) return refuse(l, "a bad table of relocations");
        const Elf64_Rela *r = (const Elf64_Rela *)(const void *)(l->object + s->sh_offset);
        for (size_t k = 0; k < s->sh_size / sizeof *r; k++)
            LF_TRY(relocate(l, &l->sections[s->sh_info], l->place[s->sh_info], &r[k]));
    }
    return NULL;
}

// ---- all -----------------------------------------------------------------------------------------------------------------------

static lf_status find_symbols(const loading *l, lf_native_symbol *symbols, size_t n) {
    for (size_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < l->n_symbols && !symbols[i].address; k++) {
            uint64_t address;
            if (l->symbols[k].st_shndx == SHN_UNDEF || strcmp(name_of(l, &l->symbols[k]), symbols[i].name) != 0) continue;
            LF_TRY(address_of(l, k, &address));
            symbols[i].address = (void *)(uintptr_t)address;
        }
        if (!symbols[i].address) return lf_error(l->a, LF_INTERNAL, "loading code: there is no '%s' in it", symbols[i].name);
    }
    return NULL;
}

static lf_status fill(loading *l) {
    for (uint32_t i = 0; i < l->n_sections; i++)
        if (l->place[i] != NOWHERE)
            memcpy(l->base + l->place[i], l->object + l->sections[i].sh_offset, l->sections[i].sh_size);
    LF_TRY(relocate_all(l));
    if (mprotect(l->base, l->code_bytes, PROT_READ | PROT_EXEC) ||
        mprotect(l->base + l->code_bytes, l->all_bytes - l->code_bytes, PROT_READ))
        return lf_error(l->a, LF_UNAVAILABLE, "loading code: this process may not run code that it has made: %s",
                        strerror(errno));
    return NULL;
}

static lf_status load(loading *l, lf_native_symbol *symbols, size_t n_symbols, lf_native *code) {
    LF_TRY(read_header(l));
    l->place = lf_alloc(l->a, l->n_sections * sizeof *l->place);
    if (!l->place) return lf_out_of_memory();
    for (uint32_t i = 0; i < l->n_sections; i++) l->place[i] = NOWHERE;
    LF_TRY(place_all(l));
    if (!l->all_bytes) return refuse(l, "the object is empty");
    void *base = mmap(NULL, l->all_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return lf_out_of_memory();
    *code = (lf_native){l->a, base, l->all_bytes};
    l->base = base;
    LF_TRY(fill(l));
    return find_symbols(l, symbols, n_symbols);
}

lf_status lf_native_load(const lf_allocator *a, const void *object, size_t size, lf_native_symbol *symbols, size_t n_symbols,
                         lf_native **out_code) {
    *out_code = NULL;
    for (size_t i = 0; i < n_symbols; i++) symbols[i].address = NULL;
    loading l = {.a = a, .object = object, .size = size};
    if ((uintptr_t)object % 8) return refuse(&l, "the object is not aligned to 8 bytes");
    lf_native *code = lf_alloc_zero(a, sizeof *code);
    if (!code) return lf_out_of_memory();
    code->allocator = a;
    lf_status s = load(&l, symbols, n_symbols, code);
    lf_free(a, l.place);
    if (s) {
        for (size_t i = 0; i < n_symbols; i++) symbols[i].address = NULL;
        lf_native_unload(code);
        return s;
    }
    *out_code = code;
    return NULL;
}

void lf_native_unload(lf_native *code) {
    if (!code) return;
    if (code->base) munmap(code->base, code->bytes);
    lf_free(code->allocator, code);
}
