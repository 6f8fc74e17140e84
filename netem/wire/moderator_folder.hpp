// A moderator's folder: the key and the certificate, the newest revocation list, and the record of
// admitted nodes. One program at a time changes the folder, and replaces each file as a whole.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"
#include "netem/wire/key_files.hpp"
#include "netem/wire/moderator.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::netem::wire {

/// A row of admitted.csv.
struct admission_record {
  std::string name, serial;
  std::int64_t from_utc_ns = 0, until_utc_ns = 0;
  std::string key; ///< 64 hexadecimal digits; empty in rows of an earlier version
};

/// Reads rows of `name,serial,from,until,key`, with times as utc_text() writes them. The column
/// `key` may be missing. Errors: the first bad line, with its number.
result<std::vector<admission_record>> read_admitted(std::string_view csv);

class moderator_folder {
public:
  /// Makes the folder. Errors: as new_folder and moderator::make().
  static result<void> make(const std::filesystem::path& path, std::string_view swarm,
                           std::int64_t utc_ns, duration validity);

  /// Waits until no other program changes the folder. Errors: a file that is missing, damaged or of
  /// another moderator; a key that group or others may read; an expired moderator.
  static result<moderator_folder> open(const std::filesystem::path& path, std::int64_t utc_ns);

  const moderator& keys() const noexcept { return moderator_; }
  const revocation_list& revoked() const noexcept { return revoked_; }
  /// The admitted nodes in the order of their admission.
  const std::vector<admission_record>& everybody() const noexcept { return admitted_; }

  /// Records a new certificate, and then issues it (PEM). This order keeps every issued certificate
  /// on record. A node may be admitted again.
  /// Errors: as moderator::admit(); a file that cannot be written; a name that differs from an
  /// admitted one only in capitals. TLS takes such names for the same.
  result<std::string> admit(std::string_view name, const public_key_bytes& key, std::int64_t utc_ns,
                            duration validity, bool operates = false);

  /// Writes the next revocation list. Errors: as moderator::revoke(); a file that cannot be
  /// written.
  result<void> revoke(const std::vector<std::string>& serials, std::int64_t utc_ns);

private:
  moderator_folder(std::filesystem::path path, folder_lock lock, moderator keys,
                   revocation_list revoked, std::vector<admission_record> everybody);

  std::filesystem::path path_;
  folder_lock lock_;
  moderator moderator_;
  revocation_list revoked_;
  std::vector<admission_record> admitted_;
};

} // namespace shoal::netem::wire
