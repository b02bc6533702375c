#include "pif/component/stretch.h"

#include <algorithm>
#include <random>

#include "component/fixture.h"

namespace pif::component::test {
namespace {

using Random = std::mt19937_64;

std::size_t from_to(Random& random, std::size_t least, std::size_t most) {
  return std::uniform_int_distribution<std::size_t>(least, most)(random);
}

// Rows of a component, and where stretches of it begin.
struct Sample {
  Sample(const Format& format, Random& random) {
    constexpr std::size_t kCounts[] = {3, 700, 3000};
    const std::size_t count = from_to(random, 0, kCounts[from_to(random, 0, 2)]);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t length = from_to(random, 0, 9) > 0 ? from_to(random, 0, 40) : from_to(random, 3000, 9000);
      lengths.push_back(format.is_fixed() ? format.record_length : static_cast<std::uint32_t>(length));
    }
    ends.push_back(0);
    for (const std::uint32_t length : lengths) ends.push_back(ends.back() + length);
    bytes = pattern(ends.back(), 3);
    for (auto more = from_to(random, 0, 5); more > 0; --more) begins.push_back(from_to(random, 0, count));
    std::sort(begins.begin(), begins.end());
    begins.insert(begins.begin(), 0);
  }
  std::span<const std::byte> bytes_of(std::size_t begin, std::size_t end) const {
    return std::span(bytes).subspan(ends[begin], ends[end] - ends[begin]);
  }

  std::vector<std::uint32_t> lengths;
  std::vector<std::uint64_t> ends;
  Bytes bytes;
  std::vector<std::size_t> begins;
};

// One stretch, with how far it is written.
struct Writing {
  StretchWriter writer;
  std::size_t at, end;
};

void append_some(Writing& to, const Sample& sample, bool fixed, std::size_t rows) {
  const std::size_t end = std::min(to.end, to.at + rows);
  const auto lengths = std::span(sample.lengths).subspan(to.at, end - to.at);
  must(to.writer.append_rows(fixed ? std::span<const std::uint32_t>() : lengths, sample.bytes_of(to.at, end)));
  to.at = end;
}

}  // namespace

TEST_CASE("a component that is written in stretches at once is the one that a single writer makes") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const Format formats[] = {Format::lines(), Format::fixed(1), Format::fixed(100), Format::fixed(5000)};
    const Format format = formats[seed % 4];
    const auto form = static_cast<std::uint32_t>(seed / 4 % 2);
    const Sample sample(format, random);
    Fixture made(format, FileId(12), form), other(format, FileId(12), form);
    std::vector<Writing> stretches;
    for (std::size_t i = 0; i < sample.begins.size(); ++i) {
      const std::size_t begin = sample.begins[i];
      const std::size_t end = i + 1 < sample.begins.size() ? sample.begins[i + 1] : sample.lengths.size();
      stretches.push_back({StretchWriter(made.shape, begin, sample.ends[begin], made.files), begin, end});
    }
    const auto is_open = [](const Writing& each) { return each.at < each.end; };
    while (std::any_of(stretches.begin(), stretches.end(), is_open)) {
      Writing& next = stretches[from_to(random, 0, stretches.size() - 1)];
      if (is_open(next)) append_some(next, sample, format.is_fixed(), from_to(random, 1, 1000));
    }
    Seam seam;
    for (Writing& each : stretches) must(each.writer.finish(seam));
    made.tail = must(end_at(made.shape, made.files, seam));

    Writer writer = other.writer();
    if (format.is_fixed()) {
      must(writer.write_rows(0, sample.lengths.size(), {sample.bytes.data(), format.record_length}));
    } else {
      must(writer.append_rows(sample.lengths, sample.bytes));
    }
    REQUIRE(made.tail == must(writer.finish()));
    REQUIRE(made.check().empty());
    REQUIRE(made.read_all() == sample.bytes);
  }
}

TEST_CASE("stretches meet, and rows are what their lengths say") {
  Fixture f(Format::lines());
  const std::vector<std::uint32_t> lengths = {3, 2};
  StretchWriter first(f.shape, 0, 0, f.files), second(f.shape, 2, 5, f.files);
  CHECK(code_of(first.append_rows(lengths, pattern(4, 1))) == Code::kInvalid);
  must(first.append_rows(lengths, pattern(5, 1)));
  CHECK(first.rows() == 2);
  CHECK(first.bytes() == 5);
  Seam seam;
  CHECK(code_of(second.finish(seam)) == Code::kInvalid);  // the first one comes before
  must(first.finish(seam));
  Seam wrong = seam;
  wrong.data.pop_back();
  CHECK(code_of(end_at(f.shape, f.files, wrong)) == Code::kInvalid);
  must(second.finish(seam));
  CHECK(must(end_at(f.shape, f.files, seam)).rows == 2);
}

TEST_CASE("fixed rows come whole, and without lengths") {
  Fixture f(Format::fixed(10));
  StretchWriter writer(f.shape, 0, 0, f.files);
  const std::vector<std::uint32_t> lengths = {10};
  CHECK(code_of(writer.append_rows({}, pattern(9, 1))) == Code::kInvalid);
  CHECK(code_of(writer.append_rows(lengths, pattern(10, 1))) == Code::kInvalid);
  must(writer.append_rows({}, pattern(20, 1)));
  CHECK(writer.rows() == 2);
}

}  // namespace pif::component::test
