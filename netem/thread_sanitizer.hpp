// Tells ThreadSanitizer what it cannot see: that putting a message into CAF's mailbox happens before taking
// it out. The mailbox orders that by atomics inside of libcaf, which is not instrumented. Nothing in other
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
inline void before_arrival() noexcept { __tsan_release(&mailboxes); }
/// After the next element of a mailbox is known, before it is handled.
inline void after_arrival() noexcept { __tsan_acquire(&mailboxes); }
#else
inline void before_arrival() noexcept {}
inline void after_arrival() noexcept {}
#endif

}  // namespace shoal::netem
