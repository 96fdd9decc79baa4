// How the tests were built. gcc says it by macros, clang by features.
#ifndef LF_TEST_BUILD_H
#define LF_TEST_BUILD_H

#if defined(__has_feature)
#define LF_TEST_HAS(feature) __has_feature(feature)
#else
#define LF_TEST_HAS(feature) 0
#endif

#if defined(__SANITIZE_THREAD__) || LF_TEST_HAS(thread_sanitizer)
#define UNDER_TSAN 1 // which does not follow threads into a forked child
#else
#define UNDER_TSAN 0
#endif
#if UNDER_TSAN || defined(__SANITIZE_ADDRESS__) || LF_TEST_HAS(address_sanitizer)
#define SLOW_BUILD 1 // code runs several times slower and takes more memory: fewer cases, no budgets
#else
#define SLOW_BUILD 0
#endif
#endif
