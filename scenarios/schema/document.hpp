// A YAML text as a tree in which every key and value knows its position. Unlike yaml-cpp's own tree
// it reports duplicate keys, applies merge keys ('<<': a mapping or a list of them; explicit keys
// win, then earlier ones) and stays small for hostile input. Values reached through an alias are
// shared and keep the position of their anchor. Tags are refused: nothing here needs them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

constexpr std::size_t max_file_bytes = 1 << 20;
constexpr std::uint32_t max_nesting = 32;
constexpr std::uint64_t max_nodes =
    200'000; ///< aliases and merges count with all that they expand to

/// 1-based, columns in bytes. `set` >= 0: in that '--set' argument instead of the file.
struct position {
  int set = -1;
  int line = 1, column = 1;
  int length = 1;
};

/// Something to report. Turned into a diagnostic once all are known.
struct problem {
  position where;
  std::string message;
  std::vector<std::string> notes;
  bool warning = false;
  std::string
      other_file{}; ///< where it is, if not in the scenario; `where` then names who refers to it
  position there{}; ///< the place in `other_file`
  std::string source_line{}; ///< of `other_file`
};

struct node;
using node_ptr = std::shared_ptr<node>;

struct entry {
  std::string key;
  position where; ///< of the key
  node_ptr value;
};

enum class node_kind { null, scalar, sequence, mapping };

struct node {
  node_kind kind = node_kind::null;
  position where;
  std::string text;            ///< scalar
  std::vector<node_ptr> items; ///< sequence
  std::vector<entry> entries;  ///< mapping; no key twice
  std::uint64_t weight = 1;    ///< nodes in the expanded tree
  std::uint32_t height = 1;    ///< levels in the expanded tree
  bool open = false;           ///< still being parsed: an alias to it would be a cycle

  /// The entry named `key`, or null.
  const entry* find(std::string_view key) const;
};

struct document {
  node_ptr root; ///< null if there is none: `problems` says why
  std::vector<problem> problems;
};

/// Where `text` has a NUL or is not UTF-8; npos if all is well.
std::size_t first_bad_byte(std::string_view text);

/// `set`: see position.
document parse_document(std::string_view text, int set = -1);

} // namespace shoal::scenarios
