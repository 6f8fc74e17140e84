#include "kernels/learn/formats/whole_file.hpp"

#include "kernels/base/descriptor.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace shoal::learn {

namespace {

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

failure refused(std::string_view what, const std::filesystem::path& path, const std::string& why) {
  return failure{std::string(what) + ": '" + path.string() + "' " + why};
}

} // namespace

result<std::string> read_whole_file(const std::filesystem::path& path, std::uint64_t at_most,
                                    std::string_view what) {
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0)
    return refused(what, path, std::string("cannot be opened: ") + std::strerror(errno));
  struct stat about {};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode))
    return refused(what, path, "is not a file");
  const auto size = static_cast<std::uint64_t>(about.st_size);
  if (size > at_most)
    return refused(what, path,
                   "has " + std::to_string(size) + " bytes; at most " + std::to_string(at_most) +
                       " are read");
  std::string out(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    const auto got = ::read(file.get(), out.data() + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused(what, path, std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) return refused(what, path, "ended while it was read");
    have += static_cast<std::size_t>(got);
  }
  return out;
}

result<void> write_whole_file(const std::filesystem::path& path,
                              std::span<const std::span<const std::byte>> parts,
                              std::string_view what) {
  const auto temporary = path.string() + ".partial";
  auto failed = [&](const char* doing) -> result<void> {
    const int reason = errno;
    ::unlink(temporary.c_str());
    return failure{std::string(what) + ": cannot " + doing + " '" + path.string() +
                   "': " + std::strerror(reason)};
  };
  {
    const descriptor file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) return failed("create");
    for (const auto& part : parts)
      if (!write_all(file.get(), part)) return failed("write");
    if (::fsync(file.get()) != 0) return failed("write");
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return failed("replace");
  return {};
}

result<void> write_whole_file(const std::filesystem::path& path, std::string_view text,
                              std::string_view what) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  return write_whole_file(path, std::span(&part, 1), what);
}

} // namespace shoal::learn
