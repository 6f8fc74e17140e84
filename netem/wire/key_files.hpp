// The files of keys and certificates: what they are called, and reading and writing them so that
// secrets are nobody else's at any moment and files are there whole or not at all.
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/secret_text.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace shoal::netem::wire {

inline constexpr std::string_view node_key_file = "node.key"; ///< the node's secret
inline constexpr std::string_view node_certificate_file = "node.crt";
inline constexpr std::string_view swarm_certificate_file =
    "swarm.crt"; ///< the moderator's certificate; nodes and the moderator have it
inline constexpr std::string_view revocation_list_file =
    "revoked.crl"; ///< nodes and the moderator have it
inline constexpr std::string_view moderator_key_file = "moderator.key"; ///< the moderator's secret
inline constexpr std::string_view admitted_file = "admitted.csv";       ///< the moderator's record

/// Errors: cannot be opened or read, not a regular file, more than 16 MiB.
result<std::string> read_text(const std::filesystem::path& path);

/// As read_text(), of a file that may turn out to be a secret.
result<secret_text> read_wiped(const std::filesystem::path& path);

/// Errors: as read_text(); group or others may do anything with the file.
result<secret_text> read_secret(const std::filesystem::path& path);

/// Replaces the file, if there is one, by a whole one. Errors: it cannot be written; the old one
/// stays.
result<void> write_text(const std::filesystem::path& path, std::string_view text);

/// A folder that appears with all its files at commit(), or never. Its mode is 0700, that of
/// secrets in it 0600, from the moment at which they are made.
class new_folder {
public:
  /// Errors: there is something at `path` that is no empty folder; it cannot be made.
  static result<new_folder> create(const std::filesystem::path& path);
  ~new_folder();
  new_folder(new_folder&& other) noexcept;
  new_folder& operator=(new_folder&&) = delete;

  result<void> write(std::string_view name, std::string_view text);
  result<void> write(std::string_view name, const secret_text& secret);
  result<void> commit();

private:
  new_folder(std::filesystem::path path, std::filesystem::path partial)
      : path_(std::move(path)), partial_(std::move(partial)) {}
  std::filesystem::path path_, partial_; // `partial_` is empty after commit()
};

/// While it lives, no other program has the same folder's lock. The system takes it back from who
/// dies.
class folder_lock {
public:
  /// Waits for it. Errors: no such folder.
  static result<folder_lock> take(const std::filesystem::path& folder);
  ~folder_lock();
  folder_lock(folder_lock&& other) noexcept;
  folder_lock& operator=(folder_lock&&) = delete;

private:
  explicit folder_lock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_; // -1 after a move
};

} // namespace shoal::netem::wire
