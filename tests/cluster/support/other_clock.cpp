// A library for LD_PRELOAD that shows a program another machine: a clock that is off by
// CLOCK_IS_OFF_BY seconds, or the host name HOST_NAME_IS. Only C++'s system_clock is shifted. A
// shifted clock_gettime would also shift deadlines that the kernel compares with its own clock.
#include <dlfcn.h>
#include <sys/types.h>
#include <time.h>

#include <cstdlib>
#include <cstring>

extern "C" {

/// std::chrono::system_clock::now(), by its symbol in the library.
long _ZNSt6chrono3_V212system_clock3nowEv() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const char* off = std::getenv("CLOCK_IS_OFF_BY");
  return (now.tv_sec + (off == nullptr ? 0 : std::strtol(off, nullptr, 10))) * 1'000'000'000 +
         now.tv_nsec;
}

int gethostname(char* into, size_t size) noexcept {
  if (const char* name = std::getenv("HOST_NAME_IS")) {
    std::strncpy(into, name, size);
    return 0;
  }
  return reinterpret_cast<int (*)(char*, size_t)>(dlsym(RTLD_NEXT, "gethostname"))(into, size);
}
}
