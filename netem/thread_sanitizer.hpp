// Tells ThreadSanitizer about orders that it cannot see. Putting a message into a CAF mailbox
// happens before its removal. CAF establishes the order by atomics in code that is not
// instrumented. In other builds, the functions do nothing.
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
/// Call before an element enters a mailbox.
inline void before_arrival() noexcept {
  __tsan_release(&mailboxes);
}
/// Call after the next element of a mailbox is known, before it is handled.
inline void after_arrival() noexcept {
  __tsan_acquire(&mailboxes);
}
#else
inline void before_arrival() noexcept {}
inline void after_arrival() noexcept {}
#endif

} // namespace shoal::netem
