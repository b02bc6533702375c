// The files of a component as a reader meets them: rows, index and sums of any content, under any length the catalogue
// may name. Sums may be made right (a file that was written wrong), so that what lies behind them is reached.
#include <algorithm>
#include <array>
#include <cstring>

#include "fuzz.h"
#include "pif/component/component.h"
#include "pif/component/memory_storage.h"

namespace {

using namespace pif;
using namespace pif::component;
using fuzz::must;

constexpr FileId kFile(7);
constexpr std::size_t kRowsReadMax = 600;
constexpr std::size_t kBytesReadMax = 64u << 10;  // into a buffer that is made for each execution
constexpr std::array<const char*, 4> kSuffixes = {".dat", ".sum", ".idx", ".isum"};

Storage& disk() {
  static const auto storage = [] {
    auto made = make_memory_storage(MemoryDisk::make());
    must(made->make_folder("/data/07").has_value(), "a folder can be made in memory");
    return made;
  }();
  return *storage;
}

void put(const std::string& suffix, std::string_view bytes) {
  auto file = disk().open(stem("", kFile) + suffix, OpenMode::kCreate);
  must(file && (*file)->resize(0) && (*file)->write(0, std::as_bytes(std::span(bytes))), "memory can be written");
}

// Sums that fit `stream`, and the sum of its partial end.
std::string sums_of(std::string_view stream, std::uint32_t id, std::uint32_t chunk_bytes, bool has_stamps,
                    std::uint64_t& tail_sum) {
  std::string sums;
  const auto bytes = std::as_bytes(std::span(stream));
  for (std::size_t at = 0; at < bytes.size(); at += chunk_bytes) {
    const auto chunk = bytes.subspan(at, std::min<std::size_t>(chunk_bytes, bytes.size() - at));
    const std::uint64_t sum = chunk_sum(kFile, id, at / chunk_bytes, chunk) ^ (has_stamps ? stamp_mix(0) : 0);
    if (chunk.size() < chunk_bytes) {
      tail_sum = sum;
      break;
    }
    sums.append(reinterpret_cast<const char*>(&sum), sizeof sum);
    if (has_stamps) sums.append(8, '\0');
  }
  return sums;
}

Format format_of(fuzz::Input& in) {
  const auto kind = in.byte() % 4;
  const auto length = in.word();
  if (kind == 1) return Format::variable();
  return kind == 2 ? Format::lines() : Format::fixed(length);
}

struct Read {
  std::uint64_t first;
  std::uint64_t count;
  std::size_t stride;
};

void read_fixed(const Reader& reader, const Shape& shape, Read what, bool sound) {
  const std::size_t length = shape.format.record_length;
  const std::size_t stride = length + what.stride;
  what.count = std::min<std::uint64_t>(what.count, kBytesReadMax / stride);
  std::vector<std::byte> out(stride * what.count);
  const auto status = reader.read_rows(what.first, what.count, {out.data(), stride});
  const bool inside = what.first <= reader.tail().rows && what.count <= reader.tail().rows - what.first;
  must(!sound || status.has_value() == inside, "rows of a component whose check finds nothing can be read");
}

void read_variable(const Reader& reader, const Read& what, bool sound) {
  std::vector<std::uint64_t> ends(what.count + 1);
  const auto status = reader.read_ends(what.first, what.count, ends);
  const bool inside = what.first <= reader.tail().rows && what.count <= reader.tail().rows - what.first;
  must(!sound || status.has_value() == inside, "ends of a component whose check finds nothing can be read");
  must(!status || std::is_sorted(ends.begin(), ends.end()), "ends rise");
  must(!status || ends.back() <= reader.tail().bytes, "and are in the data");
}

void read_all(const Shape& shape, const Tail& tail, const Read& what, std::uint64_t offset) {
  auto files = open_files(disk(), stem("", kFile), shape.format, OpenMode::kRead);
  must(files.has_value() == shape.format.validate().has_value(), "the files are there");
  if (!files) return;
  const Reader reader(shape, tail, *files);
  const auto lines = reader.check();
  const bool sound = lines && lines->empty();
  if (shape.format.is_fixed() && shape.format.record_length > 0) read_fixed(reader, shape, what, sound);
  if (!shape.format.is_fixed()) read_variable(reader, what, sound);
  std::vector<std::byte> bytes(what.count);
  const auto status = reader.read_bytes(offset, bytes);
  must(!sound || status.has_value() == (offset <= tail.bytes && bytes.size() <= tail.bytes - offset),
       "bytes can be read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  const unsigned flags = in.byte();
  Shape shape = Shape::of(kFile, Format::fixed(1), (flags >> 4) & 3);
  shape.format = format_of(in);
  const auto chunk_bytes = in.word();
  shape.chunk_bytes = (flags & 1) != 0 || !shape.format.validate() ? chunk_bytes : chunk_bytes_for(shape.format);
  const std::string_view rows = in.text();
  const std::string_view index = in.text();
  Tail tail{rows.size(), rows.size(), 0, 0};
  if (!shape.format.is_fixed())
    tail.rows = index.size() / 8;
  else if (shape.format.record_length > 0)
    tail.rows = fixed_file_length(shape.format.record_length, rows.size()).records;
  put(".dat", rows);
  put(".idx", index);
  if ((flags & 2) == 0 && shape.chunk_bytes > 0) {  // sums are right
    put(".sum", sums_of(rows, kDataStream, shape.chunk_bytes, shape.form > 0, tail.data_sum));
    put(".isum", sums_of(index.substr(0, tail.rows * 8), kIndexStream, kIndexChunkBytes, false, tail.index_sum));
  } else {
    put(".sum", in.text());
    put(".isum", in.text());
  }
  if ((flags & 4) != 0) tail = {in.wide(), in.wide(), in.wide(), in.wide()};
  if ((flags & 8) != 0) put(kSuffixes[in.byte() % kSuffixes.size()], in.text());
  const Read what{in.wide(), in.word() % kRowsReadMax, in.byte()};
  read_all(shape, tail, what, in.wide());
  return 0;
}

std::vector<std::pair<std::string, std::string>> pif::fuzz::seeds() {
  std::vector<std::pair<std::string, std::string>> out;
  const auto add = [&out](const char* name, unsigned flags, unsigned kind, unsigned length, std::string_view rows,
                          std::string_view index, const std::string& rest) {
    out.emplace_back(name,
                     Output().byte(flags).byte(kind).word(length).word(4096).text(rows).text(index).bytes(rest).str());
  };
  const std::string rows(9000, 'r');
  const std::string read = Output().wide(1).word(3).byte(2).wide(5).str();
  const std::string ends = Output().wide(4).wide(4).wide(11).str();
  add("fixed", 0, 0, 100, rows, "", read);
  add("fixed-long", 0, 0, 4096, rows, "", read);
  add("fixed-short-last", 0, 0, 7, "0123456789", "", Output().wide(0).word(2).byte(0).wide(0).str());
  add("variable", 0, 1, 0, "one\ntwo\n333", ends, read);
  add("lines", 0, 2, 0, "one\ntwo\n333", ends, Output().wide(0).word(3).byte(0).wide(0).str());
  add("wrong-sums", 2, 0, 100, rows, "", Output().text("12345678").text("").bytes(read).str());
  add("falling-ends", 0, 1, 0, "abc", Output().wide(2).wide(1).str(), Output().wide(0).word(2).str());
  add("endless", 4, 1, 0, "abc", ends, Output().wide(~0ull).wide(~0ull).wide(0).wide(0).bytes(read).str());
  add("endless-fixed", 4, 0, 1, "abc", ends, Output().wide(~0ull).wide(~0ull).wide(0).wide(0).bytes(read).str());
  add("odd-chunks", 1, 0, 3, rows, "", read);
  add("cut", 8, 0, 100, rows, "", Output().byte(0).text("cut").bytes(read).str());
  return out;
}
