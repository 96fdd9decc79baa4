// Mailboxes: a value from a kernel without a synchronisation, and one owner a slot. On the CPU device, which they need only
// for their memory.
#include "runtime/mailbox.h"
#include "test/unit/test_runtime.h"

static counting heap;
static lf_device *device;
static const lf_device_ops *ops;
static lf_stream *stream;

static void setup(void) {
    counting_init(&heap);
    ok(lf_cpu_device_create(&heap.allocator, NULL, 2, &device));
    ops = device->ops;
    ok(ops->stream_create(device, &stream));
}
static void teardown(void) {
    ops->stream_destroy(stream);
    ops->destroy(device);
    ck_assert_int_eq(heap.live, 0);
}

static void post(const uint64_t *args, uint64_t begin, uint64_t end) {
    (void)begin, (void)end;
    lf_mailbox_slot *slot = (lf_mailbox_slot *)(uintptr_t)args[0];
    slot->value[0] = args[1];
    atomic_fetch_add_explicit(&slot->sequence, 1, memory_order_release);
}

START_TEST(a_mailbox_brings_a_value_without_a_sync) {
    lf_mailbox_pool *pool;
    lf_mailbox box, next;
    lf_kernel *k;
    static gate g = GATE;
    uint64_t value[2];
    ok(ops->kernel_load(device, &(lf_image){.kind = LF_IMAGE_NATIVE, .entry = "post", .address = (void *)post}, &k));
    ok(lf_mailbox_pool_create(device, &pool));
    ok(lf_mailbox_take(pool, &box));
    ok(ops->stream_callback(stream, wait_at, &g));
    ok(ops->launch(
        stream,
        &(lf_launch){
            .kernel = k, .args = (uint64_t[]){(uintptr_t)box.device_slot, 42}, .n_args = 2, .items = 1, .grain = 1}));
    ck_assert(!lf_mailbox_ready(&box));
    ck_assert(!lf_mailbox_read(&box, value));
    fails(lf_mailbox_wait(&box, &heap.allocator, 0), LF_TIMEOUT);
    double before = now();
    fails(lf_mailbox_wait(&box, &heap.allocator, 20000000), LF_TIMEOUT);
    ck_assert_msg(now() - before >= 0.02 && now() - before < 2, "waited %g s", now() - before);
    open_gate(&g);
    ok(lf_mailbox_wait(&box, &heap.allocator, UINT64_MAX));
    ck_assert(lf_mailbox_read(&box, value));
    ck_assert_uint_eq(value[0], 42);
    ck_assert_uint_eq(device->stats.syncs, 0);
    // A slot that is used again starts without a value.
    lf_mailbox_slot *slot = box.slot;
    lf_mailbox_give(pool, &box);
    ck_assert_ptr_null(box.slot);
    lf_mailbox_give(pool, &box);
    ok(lf_mailbox_take(pool, &next));
    ck_assert_ptr_eq(next.slot, slot);
    ck_assert(!lf_mailbox_ready(&next) && atomic_load(&next.slot->sequence) == 0);
    lf_mailbox_pool_destroy(pool);
    ops->kernel_destroy(k);
}
END_TEST

static lf_mailbox_pool *shared_pool;
static void *take_and_give(void *arg) {
    enum { HELD = 40 };
    lf_mailbox held[HELD] = {{0}};
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (int i = 0; i < 20000; i++) {
        lf_mailbox *b = &held[rand_r(&seed) % HELD];
        if (b->slot) {
            ck_assert_uint_eq(b->slot->value[0], (uintptr_t)arg); // nobody else has it
            lf_mailbox_give(shared_pool, b);
        } else {
            ok(lf_mailbox_take(shared_pool, b));
            b->slot->value[0] = (uintptr_t)arg;
        }
    }
    for (int i = 0; i < HELD; i++) lf_mailbox_give(shared_pool, &held[i]);
    return NULL;
}
START_TEST(mailbox_slots_have_one_owner) {
    pthread_t threads[8];
    ok(lf_mailbox_pool_create(device, &shared_pool));
    for (uintptr_t i = 0; i < 8; i++) pthread_create(&threads[i], NULL, take_and_give, (void *)(i + 1));
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    static lf_mailbox all[5000];
    for (int i = 0; i < 5000; i++) {
        ok(lf_mailbox_take(shared_pool, &all[i]));
        all[i].slot->reserved++;
    }
    for (int i = 0; i < 5000; i++) ck_assert_uint_eq(all[i].slot->reserved, 1); // no two share a slot
    for (int i = 0; i < 5000; i++) lf_mailbox_give(shared_pool, &all[i]);
    lf_mailbox_pool_destroy(shared_pool);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("runtime mailbox");
    TCase *t = tcase_create("mailbox");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_mailbox_brings_a_value_without_a_sync);
    tcase_add_test(t, mailbox_slots_have_one_owner);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
