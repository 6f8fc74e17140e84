// The model that a command serves, and how it is loaded.
#pragma once

#include "kernels/learn/model_file.hpp"

#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace shoal::tools {

struct model_argument {
  std::string path, tokenizer, weights = "float32";

  void add_to(CLI::App& command);
  /// Prints the error, and returns null then.
  std::shared_ptr<const learn::served_model> load() const;
  learn::weight_format format() const;
};

/// A name for a process that has no keys: no two processes have the same.
std::string process_name(const std::string& role);

} // namespace shoal::tools
