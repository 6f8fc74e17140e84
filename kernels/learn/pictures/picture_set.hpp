// A prepared set of pictures with captions in one file: codes, captions, their coder and the
// tokenizer of the captions. Training streams from it, and drawing turns codes into pictures again.
// Little-endian:
//   magic "SHOALPIC" [8], version u32, size of the unpacked rest u64; then in one Brotli stream:
//   size of the header u64, header (JSON, UTF-8), values of the coder float32, codes u16
//   [pictures, side * side]
// Version 2 has `codebook` in its header: the kind of the coder, and its sizes besides the grid. In
// version 1 the coder is of the default kind. save() writes it for that kind, so that files and
// their hashes stay as they were.
// Source: the data of the run streamed codes of 16 bits, packed by Brotli (Borzunov et al.,
// "Training Transformers Together", arXiv:2207.03481, section 3).
#pragma once

#include "kernels/base/digest.hpp"
#include "kernels/base/result.hpp"
#include "kernels/learn/pictures/picture_coder.hpp"
#include "kernels/learn/tokenizer/tokenizer.hpp"
#include "kernels/learn/tokens.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::learn {

struct picture_set {
  std::shared_ptr<const picture_coder> coder;
  std::shared_ptr<const tokenizer> words; ///< use_words() sets it
  std::string words_json;                 ///< the same as tokenizer.json
  std::vector<std::string> captions;
  std::vector<std::vector<token_id>> codes; ///< codes of each picture: [side * side]
  std::vector<std::uint8_t> held_out;       ///< 1 for pictures that are never trained on
  digest content;                           ///< BLAKE2b of the unpacked file

  /// Sets the tokenizer of the captions. Errors: as of tokenizer::make().
  result<void> use_words(tokenizer_description description);
  std::vector<std::size_t> places(bool of_held_out) const;
  /// The tokens of a caption, cut or padded with 0 to `length`.
  std::vector<token_id> tokens_of(std::string_view caption, std::size_t length) const;
};

/// Chooses the captions that are held out: 1 for each of them. Candidates have the form `A: B`,
/// such as 'waving hand: dark skin tone', and about `fraction` of them are chosen. The A and the B
/// of each chosen caption are both in captions that remain. If no caption has that form, any may be
/// held out. Equal arguments give equal choices.
std::vector<std::uint8_t> choose_held_out(std::span<const std::string> captions, double fraction,
                                          std::uint64_t seed);

/// Errors: the path and the system's reason.
result<void> save(const picture_set& set, const std::filesystem::path& path);
/// Errors: no such file; no prepared set (says how to make one); another version; a damaged file
/// (says its fault); a coder of an unknown kind. Never unpacks more than 1 GiB.
result<picture_set> load_picture_set(const std::filesystem::path& path);

/// The content of the file without its packing.
std::string text_of(const picture_set& set);
/// The set with that content; `name` is for errors. Errors: a damaged content (says its fault), a
/// coder of an unknown kind.
result<picture_set> parse_picture_set(std::string_view text, const std::string& name);

} // namespace shoal::learn
