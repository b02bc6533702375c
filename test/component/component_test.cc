#include "pif/component/component.h"

#include <algorithm>
#include <thread>

#include <rapidcheck.h>

#include "component/fixture.h"

namespace pif::component::test {
namespace {

// A fixed-record component beside a plain vector of the bytes it must have.
class FixedModel {
 public:
  FixedModel(std::uint32_t length, std::uint32_t form)
      : length_(length), fixture_(Format::fixed(length), FileId(12), form), writer_(fixture_.writer()) {}

  std::uint64_t rows() const { return (bytes_.size() + length_ - 1) / length_; }
  std::uint64_t rows_max() const { return std::max<std::uint64_t>(4, 500'000 / length_); }

  void write(Row first, std::uint64_t count, std::size_t gap, std::uint32_t last_bytes) {
    const std::size_t stride = length_ + gap;
    const Bytes memory = pattern((count - 1) * stride + length_, ++seed_);
    const std::uint64_t end = first * length_ + (count - 1) * length_ + (last_bytes ? last_bytes : length_);
    if (last_bytes != 0 && end < bytes_.size()) last_bytes = 0;
    must(writer_.write_rows(first, count, {memory.data(), stride}, last_bytes));
    const std::uint64_t new_end = (first + count - 1) * length_ + (last_bytes ? last_bytes : length_);
    bytes_.resize(std::max<std::uint64_t>(bytes_.size(), new_end));
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t n = i + 1 == count && last_bytes ? last_bytes : length_;
      std::copy_n(memory.data() + i * stride, n, bytes_.data() + (first + i) * length_);
    }
  }

  void truncate(Row row) {
    must(writer_.truncate(row));
    if (row < rows()) bytes_.resize(row * length_);
  }

  void finish(bool reopen) {
    fixture_.tail = must(writer_.finish());
    RC_ASSERT(fixture_.tail.rows == rows());
    RC_ASSERT(fixture_.tail.bytes == bytes_.size());
    if (reopen) writer_ = fixture_.writer();
  }

  void read(Row first, std::uint64_t count, std::size_t gap) {
    const std::size_t stride = length_ + gap;
    Bytes memory((count - 1) * stride + length_, std::byte{0});
    Bytes expected = memory;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t at = (first + i) * length_;
      const std::uint64_t n = std::min<std::uint64_t>(length_, bytes_.size() - at);
      std::copy_n(bytes_.data() + at, n, expected.data() + i * stride);
    }
    must(fixture_.reader().read_rows(first, count, {memory.data(), stride}));
    RC_ASSERT(memory == expected);
  }

  void read_bytes(std::uint64_t offset, std::uint64_t size) {
    Bytes memory(size);
    must(fixture_.reader().read_bytes(offset, memory));
    RC_ASSERT(std::equal(memory.begin(), memory.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset)));
  }

  void verify() {
    const Bytes all = fixture_.read_all();
    RC_ASSERT(all == bytes_);
    RC_ASSERT(fixture_.check().empty());
  }

  std::uint64_t bytes() const { return bytes_.size(); }

 private:
  const std::uint32_t length_;
  Fixture fixture_;
  Writer writer_;
  Bytes bytes_;
  std::uint64_t seed_ = 0;
};

std::uint64_t up_to(std::uint64_t max) { return *rc::gen::inRange<std::uint64_t>(0, max + 1); }

std::uint32_t any_length() {
  return *rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(1, 5001),
                         rc::gen::element<std::uint32_t>(1, 7, 8, 16, 100, 984, 2048, 2049, 4095, 4096, 4097, 5000));
}

void random_write(FixedModel& model, std::uint32_t length) {
  const bool sequential = *rc::gen::weightedElement<bool>({{3, true}, {1, false}});
  const Row first = sequential ? model.rows() : up_to(model.rows_max() - 1);
  const std::uint64_t most = *rc::gen::element<std::uint64_t>(3, 50, model.rows_max());
  const std::uint64_t count = 1 + up_to(std::min(most, model.rows_max()) - 1);
  const std::size_t gap = *rc::gen::element<std::size_t>(0, 0, 1, 13, 300);
  const bool is_short = *rc::gen::weightedElement<bool>({{1, true}, {5, false}});
  model.write(first, count, gap, is_short ? static_cast<std::uint32_t>(1 + up_to(length - 1)) : 0);
}

void random_reads(FixedModel& model) {
  model.verify();
  for (int i = 0; i < 4 && model.rows() > 0; ++i) {
    const Row first = up_to(model.rows() - 1);
    const std::uint64_t count = 1 + up_to(std::min<std::uint64_t>(model.rows() - first, i < 2 ? 3 : UINT64_MAX) - 1);
    model.read(first, count, *rc::gen::element<std::size_t>(0, 1, 64));
    const std::uint64_t offset = up_to(model.bytes() - 1);
    model.read_bytes(offset, up_to(model.bytes() - offset));
  }
}

// Variable records beside the list of them.
struct VariableModel {
  void append(std::uint64_t count, std::uint32_t longest) {
    std::vector<std::uint32_t> lengths;
    Bytes data;
    for (std::uint64_t i = 0; i < count; ++i) {
      rows.push_back(pattern(up_to(longest), rows.size() + 1));
      lengths.push_back(static_cast<std::uint32_t>(rows.back().size()));
      data.insert(data.end(), rows.back().begin(), rows.back().end());
    }
    must(writer.append_rows(lengths, data));
  }
  void verify(Row first, std::uint64_t count) {
    std::vector<std::uint64_t> ends(count + 1);
    const Reader reader = fixture.reader();
    must(reader.read_ends(first, count, ends));
    for (std::uint64_t i = 0; i < count; ++i) {
      Bytes row(ends[i + 1] - ends[i]);
      must(reader.read_bytes(ends[i], row));
      RC_ASSERT(row == rows[first + i]);
    }
  }

  Fixture fixture{Format::variable(), FileId(12), *rc::gen::element(0u, 1u)};
  Writer writer = fixture.writer();
  std::vector<Bytes> rows;
};

}  // namespace

TEST_CASE("component: chunks hold whole rows and aim at 4 KiB") {
  CHECK(chunk_bytes_for(Format::fixed(1)) == 4096);
  CHECK(chunk_bytes_for(Format::fixed(100)) == 4000);
  CHECK(chunk_bytes_for(Format::fixed(3000)) == 3000);
  CHECK(chunk_bytes_for(Format::fixed(65536)) == 65536);
  CHECK(chunk_bytes_for(Format::variable()) == 4096);
}

TEST_CASE("component: fixed rows written in any order, again, with gaps and cut off read back as a plain vector does") {
  REQUIRE(rc::check("fixed rows equal the model", [] {
    const std::uint32_t length = any_length();
    FixedModel model(length, *rc::gen::element(0u, 1u));
    const auto steps = *rc::gen::inRange(1, 14);
    for (int i = 0; i < steps; ++i) {
      switch (*rc::gen::weightedElement<int>({{8, 0}, {1, 1}, {2, 2}, {1, 3}})) {
        case 0: random_write(model, length); break;
        case 1: model.truncate(up_to(model.rows())); break;
        case 2:
          model.finish(false);
          random_reads(model);
          break;
        default: model.finish(true);
      }
    }
    model.finish(false);
    random_reads(model);
  }));
}

TEST_CASE("component: long rows are read and written, packed and with a stride") {
  const std::uint32_t length = GENERATE(65536u, 16u << 20);
  FixedModel model(length, GENERATE(0u, 1u));
  const std::uint64_t rows = length == 65536 ? 200 : 3;
  model.write(0, rows, 0, 0);
  model.write(rows, 2, 4096, 1000);
  model.write(1, 1, 0, 0);
  model.finish(false);
  model.verify();
  model.read(0, rows + 2, 0);
  model.read(1, rows + 1, 512);
  model.read_bytes(length - 10, 20);
}

TEST_CASE("component: a short last row is read to its place, and the rest of the place is left alone") {
  const std::uint32_t length = GENERATE(8u, 100u, 3000u, 5000u);
  FixedModel model(length, GENERATE(0u, 1u));
  model.write(0, 60, 0, length / 2);
  model.finish(false);
  for (const std::size_t gap : {std::size_t{0}, std::size_t{28}}) {
    model.read(0, 60, gap);
    model.read(58, 2, gap);
    model.read(59, 1, gap);
  }
}

TEST_CASE("component: a large write over the end of small ones keeps what it does not cover") {
  FixedModel model(100, GENERATE(0u, 1u));
  for (Row row = 0; row < 200; row += 10) model.write(row, 10, 0, 0);
  model.write(50, 1'000, 0, 0);
  for (Row row = 1'050; row < 1'250; row += 10) model.write(row, 10, 0, 0);
  model.write(700, 500, 0, 0);
  model.finish(false);
  model.verify();
}

TEST_CASE("component: variable rows, empty ones too, read back from any row") {
  REQUIRE(rc::check("variable rows equal the model", [] {
    VariableModel model;
    const auto steps = *rc::gen::inRange(1, 10);
    for (int i = 0; i < steps; ++i) {
      const auto longest = *rc::gen::element<std::uint32_t>(0, 3, 200, 9000);
      const std::uint64_t count = up_to(longest == 9000 ? 60 : 1500);
      model.append(count, longest);
      const auto action = *rc::gen::inRange(0, 4);
      if (action == 0) {
        const Row row = up_to(model.rows.size());
        must(model.writer.truncate(row));
        model.rows.resize(row);
      }
      if (action == 1) {
        model.fixture.tail = must(model.writer.finish());
        model.writer = model.fixture.writer();
      }
    }
    model.fixture.tail = must(model.writer.finish());
    RC_ASSERT(model.fixture.tail.rows == model.rows.size());
    RC_ASSERT(model.fixture.check().empty());
    model.verify(0, model.rows.size());
    for (int i = 0; i < 5 && !model.rows.empty(); ++i) model.verify(up_to(model.rows.size() - 1), 1);
  }));
}

TEST_CASE("component: several threads fill disjoint stretches of whole chunks") {
  const std::uint32_t length = 100;
  const std::uint64_t stretch = 40 * 300;  // rows: 300 chunks
  Fixture fixture(Format::fixed(length), FileId(12), GENERATE(0u, 1u));
  const Bytes bytes = pattern(4 * stretch * length + 50, 1);
  const bool own_writers = GENERATE(false, true);
  std::vector<Writer> writers;
  for (int i = 0; i < 4; ++i) writers.push_back(fixture.writer());
  std::vector<std::thread> threads;
  std::vector<Status> results(4);
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Writer& writer = writers[own_writers ? t : 0];
      for (std::uint64_t at = 0; at < stretch && results[t]; at += 40 * 60) {
        const Row row = t * stretch + at;
        results[t] = writer.write_rows(row, 40 * 60, {bytes.data() + row * length, length});
      }
      if (t == 3 && results[t])
        results[t] = writer.write_rows(4 * stretch, 1, {bytes.data() + 4 * stretch * length, length}, 50);
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& result : results) must(result);
  for (std::size_t i = 0; i < (own_writers ? 4 : 1); ++i) fixture.tail = must(writers[i].finish());
  CHECK(fixture.tail.rows == 4 * stretch + 1);
  CHECK(fixture.read_all() == bytes);
  CHECK(fixture.check().empty());
}

TEST_CASE("component: a reader with an older tail goes on reading while the tail chunk grows") {
  Fixture fixture(Format::fixed(100));
  fixture.fill(pattern(500, 1));
  const Tail old = fixture.tail;
  Writer writer = fixture.writer();
  must(writer.write_rows(5, 60, {pattern(6000, 2).data(), 100}));
  const Tail grown = must(writer.finish());
  CHECK(fixture.read_all() == pattern(500, 1));
  fixture.tail = grown;
  CHECK(fixture.check().empty());
  fixture.tail = old;
  CHECK(fixture.check().empty());
}

TEST_CASE("component: rows never published are cut off before the writer goes on") {
  Fixture fixture(Format::fixed(100));
  fixture.fill(pattern(500, 1));
  {
    Writer lost = fixture.writer();
    must(lost.write_rows(5, 1000, {pattern(100'000, 2).data(), 100}));
    must(lost.finish());
  }
  Writer writer = fixture.writer();
  must(writer.truncate(fixture.tail.rows));
  must(writer.write_rows(200, 1, {pattern(100, 3).data(), 100}));
  fixture.tail = must(writer.finish());
  Bytes expected = pattern(500, 1);
  expected.resize(20'000);
  const Bytes last = pattern(100, 3);
  expected.insert(expected.end(), last.begin(), last.end());
  CHECK(fixture.read_all() == expected);
  CHECK(fixture.check().empty());
}

TEST_CASE("component: positions past the end, wrong kinds and wrong strides are refused") {
  Fixture fixed(Format::fixed(100));
  fixed.fill(pattern(450, 1));
  Bytes into(1000);
  const Reader reader = fixed.reader();
  CHECK(code_of(reader.read_rows(4, 2, {into.data(), 100})) == Code::kEndOfFile);
  CHECK(code_of(reader.read_rows(UINT64_MAX, 2, {into.data(), 100})) == Code::kEndOfFile);
  CHECK(code_of(reader.read_rows(0, 2, {into.data(), 99})) == Code::kInvalid);
  must(reader.read_rows(5, 0, {into.data(), 100}));
  CHECK(code_of(reader.read_bytes(440, std::span(into).first(11))) == Code::kEndOfFile);
  std::vector<std::uint64_t> ends(2);
  CHECK(code_of(reader.read_ends(0, 1, ends)) == Code::kInvalid);
  Writer writer = fixed.writer();
  CHECK(code_of(writer.write_rows(2, 1, {into.data(), 100}, 50)) == Code::kInvalid);
  CHECK(code_of(writer.write_rows(9, 1, {into.data(), 100}, 101)) == Code::kInvalid);
  CHECK(code_of(writer.write_rows(UINT64_MAX / 2, 1, {into.data(), 100})) == Code::kTooLarge);
  CHECK(code_of(writer.append_rows({}, {})) == Code::kInvalid);
  CHECK(code_of(writer.truncate(6)) == Code::kInvalid);

  Fixture variable(Format::variable());
  Writer appender = variable.writer();
  CHECK(code_of(appender.append_rows(std::vector<std::uint32_t>{5}, into)) == Code::kInvalid);
  CHECK(code_of(appender.write_rows(0, 1, {into.data(), 10})) == Code::kInvalid);
  CHECK(code_of(variable.reader().read_rows(0, 0, {into.data(), 10})) == Code::kInvalid);
  CHECK(code_of(variable.reader().read_ends(0, 1, ends)) == Code::kEndOfFile);
}

TEST_CASE("component: files are passed on as handles and removed by their stem") {
  for (const Format& format : {Format::fixed(10), Format::lines()}) {
    Fixture fixture(format);
    auto handles = must(share(fixture.files));
    CHECK(handles.size() == (format.is_fixed() ? 2 : 4));
    Files adopted = must(adopt(*fixture.storage, format, std::move(handles)));
    must(sync(adopted));
    CHECK(code_of(adopt(*fixture.storage, format, {})) == Code::kInvalid);
    must(remove_files(*fixture.storage, fixture.path));
    CHECK(must(fixture.storage->list("/lfs/data/0c")).empty());
    CHECK(code_of(open_files(*fixture.storage, fixture.path, format, OpenMode::kRead)) == Code::kNotFound);
  }
}

TEST_CASE("component: a component that was synced survives a crash") {
  Fixture fixture(Format::fixed(100));
  const Bytes bytes = pattern(12'345, 1);
  fixture.fill(bytes);
  must(sync(fixture.files));
  for (const char* folder : {"/lfs/data/0c", "/lfs/data", "/lfs", "/"}) must(fixture.storage->sync_folder(folder));
  fixture.disk->crash();
  fixture.storage = make_memory_storage(fixture.disk);
  fixture.reopen();
  CHECK(fixture.read_all() == bytes);
}

}  // namespace pif::component::test
