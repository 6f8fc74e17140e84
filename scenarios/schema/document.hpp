// A YAML text as a tree in which every key and value knows its position. Unlike yaml-cpp's own
// tree, this tree reports duplicate keys and stays small for hostile input. It applies merge keys
// ('<<' with a mapping or a list of mappings). Explicit keys win over merged ones, and earlier
// mappings over later ones. Aliases share their value, which keeps the position of the anchor. The
// parser rejects tags, because scenarios do not need them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

constexpr std::size_t max_file_bytes = 1 << 20;
constexpr std::uint32_t max_nesting = 32;
/// Limit on the nodes of the expanded tree. Each use of an alias or merge counts again.
constexpr std::uint64_t max_nodes = 200'000;

/// A 1-based position, with columns in bytes. `set` >= 0: the index of a '--set' argument instead
/// of the file.
struct position {
  int set = -1;
  int line = 1, column = 1;
  int length = 1;
};

/// An error or warning. The loader sorts all problems and turns them into diagnostics.
struct problem {
  position where;
  std::string message;
  std::vector<std::string> notes;
  bool warning = false;
  /// Path of another file with the mistake. `where` is then the scenario's reference to this file.
  std::string other_file{};
  position there{};          ///< position in `other_file`
  std::string source_line{}; ///< text of this line in `other_file`
};

struct node;
using node_ptr = std::shared_ptr<node>;

struct entry {
  std::string key;
  position where; ///< position of the key
  node_ptr value;
};

enum class node_kind { null, scalar, sequence, mapping };

struct node {
  node_kind kind = node_kind::null;
  position where;
  std::string text;            ///< text of a scalar
  std::vector<node_ptr> items; ///< items of a sequence
  std::vector<entry> entries;  ///< entries of a mapping, without duplicate keys
  std::uint64_t weight = 1;    ///< nodes in the expanded tree
  std::uint32_t height = 1;    ///< levels in the expanded tree
  bool open = false; ///< the parser is inside this node, so that an alias of the node is a cycle

  /// The entry named `key`, or null.
  const entry* find(std::string_view key) const;
};

struct document {
  node_ptr root; ///< null on failure, which `problems` explains
  std::vector<problem> problems;
};

/// Offset of the first NUL or invalid UTF-8 in `text`, or npos.
std::size_t first_bad_byte(std::string_view text);

/// Parses `text`. `set` is the index of the '--set' argument, or -1 for the file.
document parse_document(std::string_view text, int set = -1);

} // namespace shoal::scenarios
