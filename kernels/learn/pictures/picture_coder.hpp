// A coder turns pictures into codes, and codes into pictures again. Each kind is one file in this
// folder that makes a picture_coder_kind, and one line in picture_coders.cpp. A program outside of
// the tree calls picture_coders().add() when it starts. `shoal images prepare --codebook` accepts
// the kind's name then, and prepared files carry it.
#pragma once

#include "kernels/base/definition_list.hpp"
#include "kernels/base/result.hpp"
#include "kernels/learn/pictures/picture.hpp"
#include "kernels/learn/tokens.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::learn {

/// A code stands for a square of `patch` pixels, and a picture has `side` rows of `side` codes.
struct coder_grid {
  std::size_t patch = 4, side = 8, codes = 512;
  std::size_t places() const noexcept { return side * side; }
  std::size_t pixels() const noexcept { return patch * side; }
  std::size_t patch_values() const noexcept { return patch * patch * 3; }

  static constexpr std::size_t most_patch = 256, most_side = 256, most_codes = 65536,
                               most_pixels = 4096;
  /// Files have no larger grids, so a picture takes at most 192 MiB.
  bool possible() const noexcept {
    return patch > 0 && side > 0 && codes > 0 && patch <= most_patch && side <= most_side &&
           codes <= most_codes && pixels() <= most_pixels;
  }
};

/// Sizes that a kind has besides those of the grid, by name.
using coder_sizes = std::map<std::string, std::size_t>;

/// Thread safety: immutable.
class picture_coder {
public:
  explicit picture_coder(const coder_grid& grid) : grid_(grid) {}
  virtual ~picture_coder() = default;

  const coder_grid& grid() const noexcept { return grid_; }
  /// The name of its kind.
  virtual std::string_view kind() const noexcept = 0;
  /// The codes row by row. Requires: a picture of grid().pixels() squared.
  virtual std::vector<token_id> encode(const picture& from) const = 0;
  /// Requires: grid().places() codes below grid().codes.
  virtual picture decode(std::span<const token_id> codes) const = 0;

  /// The kind's read() makes an equal coder of these sizes and values.
  virtual coder_sizes sizes() const { return {}; }
  virtual const std::vector<float>& values() const noexcept = 0;

private:
  coder_grid grid_;
};

using made_coder = result<std::shared_ptr<const picture_coder>>;

struct coder_training {
  std::size_t patch = 4, codes = 512, passes = 12;
  std::uint64_t seed = 1;
  std::size_t threads = 1; ///< the result does not depend on them
};

/// Gets each pass and the PSNR of the pictures in it.
using coder_progress = std::function<void(std::size_t, double)>;

struct picture_coder_kind {
  std::string name;       ///< as options and files have it
  std::string meaning;    ///< for the help, without full stop
  std::size_t passes = 1; ///< over the pictures, unless somebody asks for another number
  /// Equal arguments give equal bits. Errors: pictures that it cannot learn from.
  std::function<made_coder(std::span<const picture>, const coder_training&, const coder_progress&)>
      train;
  /// A coder from its file. Each size of the grid is in its range, and all values are finite.
  /// Errors: sizes or a number of values that no coder has.
  std::function<made_coder(const coder_grid&, const coder_sizes&, std::vector<float>)> read;
};

/// All kinds. The first one is the default, and that of files that name none.
definition_list<picture_coder_kind>& picture_coders();

/// The patches on a side of all pictures. Errors: no pictures, pictures that are no squares of one
/// size, a patch that does not divide them, or more patches than a grid has.
result<std::size_t> patches_on_a_side(std::span<const picture> pictures, std::size_t patch);

/// The entropy of the codes' frequencies in bits. Requires: codes below `codes`.
double code_entropy(std::span<const std::vector<token_id>> pictures, std::size_t codes);

} // namespace shoal::learn
