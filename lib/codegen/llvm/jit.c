// See jit.h.
#include "codegen/llvm/jit.h"
#include "codegen/llvm/llvm_status.h"
#include "codegen/llvm/target.h"
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

// All that code can reach outside itself: what LLVM turns instructions into where a processor lacks them (fma before
// FMA3, rounding before SSE4.1) or finds cheaper to call. glibc's are exact, so every processor gives the same bits.
typedef void (*lf_import_function)(void);
typedef struct lf_import {
    const char *name;
    lf_import_function function;
} lf_import;
#define LF_IMPORT(name) {#name, (lf_import_function)name}
static const lf_import imports[] = {
    LF_IMPORT(memcpy),    LF_IMPORT(memmove),    LF_IMPORT(memset), LF_IMPORT(fma),       LF_IMPORT(fmaf),
    LF_IMPORT(floor),     LF_IMPORT(floorf),     LF_IMPORT(ceil),   LF_IMPORT(ceilf),     LF_IMPORT(trunc),
    LF_IMPORT(truncf),    LF_IMPORT(rint),       LF_IMPORT(rintf),  LF_IMPORT(nearbyint), LF_IMPORT(nearbyintf),
    LF_IMPORT(roundeven), LF_IMPORT(roundevenf),
};
enum { N_IMPORTS = sizeof imports / sizeof *imports };

static const lf_import *find_import(const char *name, size_t length) {
    for (size_t i = 0; i < N_IMPORTS; i++)
        if (strlen(imports[i].name) == length && memcmp(imports[i].name, name, length) == 0) return &imports[i];
    return NULL;
}
bool lf_jit_imports(const char *name, size_t length) { return find_import(name, length); }

struct lf_jit_code {
    LLVMOrcJITDylibRef room;
    lf_jit_code *next; // in the list of all
    lf_jit_code *next_empty;
};

struct lf_jit {
    const lf_allocator *allocator;
    lf_log log;
    LLVMOrcLLJITRef orc;
    LLVMOrcExecutionSessionRef session;
    pthread_mutex_t mutex; // guards the three below
    lf_jit_code *all, *empty;
    uint32_t n_rooms, n_unloads;
};

// ---- rooms --------------------------------------------------------------------------------------------------

static LLVMErrorRef generate_imports(LLVMOrcDefinitionGeneratorRef generator, void *self, LLVMOrcLookupStateRef *state,
                                     LLVMOrcLookupKind kind, LLVMOrcJITDylibRef room, LLVMOrcJITDylibLookupFlags flags,
                                     LLVMOrcCLookupSet wanted, size_t n_wanted) {
    (void)generator, (void)self, (void)state, (void)kind, (void)flags;
    LLVMOrcCSymbolMapPair found[N_IMPORTS];
    size_t n = 0;
    for (size_t i = 0; i < n_wanted && n < N_IMPORTS; i++) {
        const char *name = LLVMOrcSymbolStringPoolEntryStr(wanted[i].Name);
        const lf_import *import = find_import(name, strlen(name));
        if (!import) continue; // stays missing, and the linker names it
        LLVMOrcRetainSymbolStringPoolEntry(wanted[i].Name);
        found[n].Name = wanted[i].Name;
        found[n].Sym.Address = (LLVMOrcExecutorAddress)(uintptr_t)import->function;
        found[n++].Sym.Flags =
            (LLVMJITSymbolFlags){.GenericFlags = LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable};
    }
    return n ? LLVMOrcJITDylibDefine(room, LLVMOrcAbsoluteSymbols(found, n)) : LLVMErrorSuccess;
}

// Rooms are never given back to ORC (it keeps them until the session ends) but emptied and used again.
static lf_status take_room(lf_jit *jit, lf_jit_code **out_code) {
    pthread_mutex_lock(&jit->mutex);
    lf_jit_code *code = jit->empty;
    if (code) {
        jit->empty = code->next_empty;
    } else if ((code = lf_alloc_zero(jit->allocator, sizeof *code))) {
        char name[32];
        snprintf(name, sizeof name, "lf%u", jit->n_rooms++);
        code->room = LLVMOrcExecutionSessionCreateBareJITDylib(jit->session, name);
        LLVMOrcJITDylibAddGenerator(code->room, LLVMOrcCreateCustomCAPIDefinitionGenerator(generate_imports, NULL, NULL));
        code->next = jit->all;
        jit->all = code;
    }
    pthread_mutex_unlock(&jit->mutex);
    *out_code = code;
    return code ? NULL : lf_out_of_memory();
}

void lf_jit_unload(lf_jit *jit, lf_jit_code *code) {
    if (!code) return;
    lf_status s = lf_llvm_error(jit->allocator, LF_INTERNAL, "unloading code", LLVMOrcJITDylibClear(code->room));
    if (s) { // the room stays as it is, unused
        lf_log_write(&jit->log, LF_LOG_ERROR, "%s", lf_status_message(s));
        lf_status_destroy(s);
        return;
    }
    pthread_mutex_lock(&jit->mutex);
    code->next_empty = jit->empty;
    jit->empty = code;
    bool sweep = ++jit->n_unloads % 256 == 0;
    pthread_mutex_unlock(&jit->mutex);
    if (sweep) LLVMOrcSymbolStringPoolClearDeadEntries(LLVMOrcExecutionSessionGetSymbolStringPool(jit->session));
}

// ---- the session --------------------------------------------------------------------------------------------

// What goes wrong while linking; the lookup that waits for it fails too, with less to say.
static void on_error(void *self, LLVMErrorRef error) {
    lf_jit *jit = self;
    lf_status s = lf_llvm_error(jit->allocator, LF_INTERNAL, "linking code", error);
    lf_log_write(&jit->log, LF_LOG_ERROR, "%s", lf_status_message(s));
    lf_status_destroy(s);
}

lf_status lf_jit_create(const lf_allocator *a, const lf_log *log, lf_jit **out_jit) {
    *out_jit = NULL;
    lf_target_initialise();
    lf_jit *jit = lf_alloc_zero(a, sizeof *jit);
    if (!jit) return lf_out_of_memory();
    jit->allocator = a;
    if (log) jit->log = *log;
    lf_status s = lf_llvm_error(a, LF_INTERNAL, "starting the JIT", LLVMOrcCreateLLJIT(&jit->orc, NULL));
    if (s) {
        lf_free(a, jit);
        return s;
    }
    jit->session = LLVMOrcLLJITGetExecutionSession(jit->orc);
    LLVMOrcExecutionSessionSetErrorReporter(jit->session, on_error, jit);
    pthread_mutex_init(&jit->mutex, NULL);
    *out_jit = jit;
    return NULL;
}

void lf_jit_destroy(lf_jit *jit) {
    if (!jit) return;
    lf_status s = lf_llvm_error(jit->allocator, LF_INTERNAL, "ending the JIT", LLVMOrcDisposeLLJIT(jit->orc));
    if (s) lf_log_write(&jit->log, LF_LOG_ERROR, "%s", lf_status_message(s));
    lf_status_destroy(s);
    for (lf_jit_code *code = jit->all; code;) {
        lf_jit_code *next = code->next;
        lf_free(jit->allocator, code);
        code = next;
    }
    pthread_mutex_destroy(&jit->mutex);
    lf_free(jit->allocator, jit);
}

// ---- loading ------------------------------------------------------------------------------------------------

typedef struct lf_lookup {
    const lf_allocator *allocator;
    lf_jit_symbol *symbols;
    size_t n_symbols;
    lf_status status;
    sem_t done; // linking may end on another thread that is linking too
} lf_lookup;

static void on_result(LLVMErrorRef error, LLVMOrcCSymbolMapPairs result, size_t n, void *self) {
    lf_lookup *lookup = self;
    lookup->status = lf_llvm_error(lookup->allocator, LF_INTERNAL, "linking code", error);
    for (size_t i = 0; !error && i < n; i++) {
        const char *name = LLVMOrcSymbolStringPoolEntryStr(result[i].Name);
        for (size_t k = 0; k < lookup->n_symbols; k++)
            if (strcmp(name, lookup->symbols[k].name) == 0)
                lookup->symbols[k].address = (void *)(uintptr_t)result[i].Sym.Address;
    }
    sem_post(&lookup->done);
}

static lf_status find_symbols(lf_jit *jit, lf_jit_code *code, lf_jit_symbol *symbols, size_t n) {
    LLVMOrcCLookupSetElement *wanted = lf_alloc_zero(jit->allocator, n * sizeof *wanted);
    if (!wanted) return lf_out_of_memory();
    for (size_t i = 0; i < n; i++) {
        symbols[i].address = NULL;
        wanted[i].Name = LLVMOrcExecutionSessionIntern(jit->session, symbols[i].name);
        wanted[i].LookupFlags = LLVMOrcSymbolLookupFlagsRequiredSymbol;
    }
    LLVMOrcCJITDylibSearchOrderElement order = {code->room, LLVMOrcJITDylibLookupFlagsMatchExportedSymbolsOnly};
    lf_lookup lookup = {.allocator = jit->allocator, .symbols = symbols, .n_symbols = n};
    sem_init(&lookup.done, 0, 0);
    LLVMOrcExecutionSessionLookup(jit->session, LLVMOrcLookupKindStatic, &order, 1, wanted, n, on_result, &lookup);
    while (sem_wait(&lookup.done) != 0) {} // interrupted by a signal
    sem_destroy(&lookup.done);
    lf_free(jit->allocator, wanted);
    return lookup.status;
}

lf_status lf_jit_load(lf_jit *jit, const void *object, size_t size, lf_jit_symbol *symbols, size_t n_symbols,
                      lf_jit_code **out_code) {
    *out_code = NULL;
    lf_jit_code *code;
    LF_TRY(take_room(jit, &code));
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(object, size, "lfuser");
    lf_status s = lf_llvm_error(jit->allocator, LF_INTERNAL, "loading code",
                                LLVMOrcLLJITAddObjectFile(jit->orc, code->room, buffer)); // consumes the buffer
    if (!s) s = find_symbols(jit, code, symbols, n_symbols);
    if (s) {
        lf_jit_unload(jit, code);
        return s;
    }
    *out_code = code;
    return NULL;
}
