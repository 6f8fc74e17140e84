// Tells ThreadSanitizer what it cannot see: that putting a message into CAF's mailbox happens
// before taking it out, and that starting an operation of gRPC happens before its callback. Both
// order that by atomics inside of their libraries, which are not instrumented. Nothing in other
// builds.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define SHOAL_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SHOAL_THREAD_SANITIZER 1
#endif
#endif

#ifdef SHOAL_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace shoal::netem {

#ifdef SHOAL_THREAD_SANITIZER
inline char mailboxes;
/// Before an element enters a mailbox.
inline void before_arrival() noexcept {
  __tsan_release(&mailboxes);
}
/// After the next element of a mailbox is known, before it is handled.
inline void after_arrival() noexcept {
  __tsan_acquire(&mailboxes);
}
/// Before gRPC is told to start something on a stream, and at the end of a callback; at the
/// beginning of one.
inline void before_callback(void* stream) noexcept {
  __tsan_release(stream);
}
inline void in_callback(void* stream) noexcept {
  __tsan_acquire(stream);
}
#else
inline void before_arrival() noexcept {}
inline void after_arrival() noexcept {}
inline void before_callback(void*) noexcept {}
inline void in_callback(void*) noexcept {}
#endif

} // namespace shoal::netem
