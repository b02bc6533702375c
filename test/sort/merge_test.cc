#include <algorithm>
#include <numeric>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "../../tools/pif_sort/runs/merge.h"
#include "libtool/cold_file.h"

namespace pif::sort {
namespace {

// Runs of 2-byte records with few different values, as the components of a file have them, and what a stable sort makes
// of all of them.
struct Sample {
  explicit Sample(std::uint32_t width) : layout(*parity::Layout::make(width)), memory(width), elements(width) {
    const auto count = *rc::gen::inRange<std::size_t>(0, 300);
    for (std::size_t n = 0; n < count; ++n) all.push_back(*rc::gen::inRange<int>(0, 20));
    for (LfsIndex lfs = 0; lfs < width; ++lfs) sort_run(lfs);
    std::stable_sort(all.begin(), all.end());
  }

  void sort_run(LfsIndex lfs) {
    std::vector<std::pair<int, std::uint32_t>> rows;
    for (std::size_t n = 0; n < all.size(); ++n) {
      const Cell cell = layout.locate(n);
      if (cell.lfs == lfs) rows.emplace_back(all[n], static_cast<std::uint32_t>(cell.row));
    }
    std::stable_sort(rows.begin(), rows.end(), [](auto a, auto b) { return a.first < b.first; });
    for (const auto& [value, row] : rows) {
      memory[lfs] += {static_cast<char>(value), '!'};
      elements[lfs].push_back(element_of({memory[lfs].data() + memory[lfs].size() - 2, 2}, row));
    }
    RunView view;
    view.source = lfs;
    view.record_length = 2;
    views.push_back(view);
  }
  std::span<const RunView> runs() {
    for (std::size_t i = 0; i < views.size(); ++i) {
      views[i].elements = elements[i];
      views[i].records = reinterpret_cast<const std::byte*>(memory[i].data());
    }
    return views;
  }
  RecordNumber number(Pick pick) const {
    return layout.record_at({views[pick.run].source, row_of(views[pick.run].elements[pick.index])});
  }

  parity::Layout layout;
  std::vector<int> all;
  std::vector<std::string> memory;
  std::vector<std::vector<Element>> elements;
  std::vector<RunView> views;
};

}  // namespace

TEST_CASE("merging between any cuts gives those ranks of a stable sort") {
  KeyOptions options;
  options.keys = {"0:2"};
  const KeyMaker maker = *KeyMaker::make(options, Format::fixed(2));
  REQUIRE(rc::check("cuts and merges", [&] {
    Sample sample(*rc::gen::inRange<std::uint32_t>(1, 10));
    const RecordNumbers numbers(sample.layout);
    Order order(maker, numbers);
    const auto runs = sample.runs();
    const auto begin = *rc::gen::inRange<std::size_t>(0, sample.all.size() + 1);
    const auto end = *rc::gen::inRange<std::size_t>(begin, sample.all.size() + 1);
    const auto from = cut_at(runs, begin, order), to = cut_at(runs, end, order);
    RC_ASSERT(std::accumulate(from.begin(), from.end(), std::size_t{0}) == begin);
    Merger merger(runs, from, to, order);
    std::size_t position = begin;
    std::optional<RecordNumber> last;
    for (; !merger.is_done(); merger.advance(), ++position) {
      const Pick pick = merger.peek();
      const auto value = static_cast<int>(runs[pick.run].record(pick.index)[0]);
      RC_ASSERT(value == sample.all[position]);
      const bool is_tie = position > begin && sample.all[position - 1] == value;
      if (is_tie) RC_ASSERT(*last < sample.number(pick));
      last = sample.number(pick);
    }
    RC_ASSERT(position == end);
  }));
}

TEST_CASE("no runs at all are merged at once") {
  const KeyMaker maker = *KeyMaker::make({}, Format::lines());
  const RecordNumbers numbers(*parity::Layout::make(1));
  Order order(maker, numbers);
  REQUIRE(cut_at({}, 0, order).empty());
  REQUIRE(Merger({}, {}, {}, order).is_done());
}

TEST_CASE("a merge of runs on a disk reads their windows, and no more") {
  constexpr std::uint32_t kRecord = 100;
  constexpr std::size_t kRecords = 200'000, kWindow = 5'000;
  std::vector<Element> order_of_run;
  std::vector<std::byte> records(kRecords * kRecord);
  for (std::uint32_t i = 0; i < kRecords; ++i) {
    const std::uint32_t key = __builtin_bswap32(i);
    std::memcpy(records.data() + std::size_t{i} * kRecord, &key, sizeof key);
    order_of_run.push_back(element_of({reinterpret_cast<const char*>(&key), sizeof key}, i));
  }
  const tool::Scratch elements = tool::cold_file(std::as_bytes(std::span(order_of_run)));
  const tool::Scratch bytes = tool::cold_file(records);
  if (elements.empty() || bytes.empty()) return;
  RunView run{0, {reinterpret_cast<const Element*>(elements.bytes().data()), kRecords}, bytes.bytes().data()};
  run.record_length = kRecord;
  run.window = kWindow;
  KeyOptions options;
  options.keys = {"0:4"};
  const KeyMaker maker = *KeyMaker::make(options, Format::fixed(kRecord));
  const RecordNumbers numbers(*parity::Layout::make(1));
  Order order(maker, numbers);
  const std::size_t begin = kRecords / 4;
  Merger merger({&run, 1}, {begin}, {kRecords}, order);
  for (std::size_t i = begin; i < kRecords; merger.advance(), ++i) {
    REQUIRE(merger.peek().index == i);
    if (i % 10'000 != 0) continue;
    CHECK(run.record(i)[0] == records[i * kRecord]);
    CHECK(tool::comes(bytes.bytes().subspan(begin * kRecord, (i + kWindow / 2 - begin) * kRecord)));
    CHECK(tool::resident_bytes(bytes.bytes()) <= (i + kWindow - begin) * kRecord + 2 * tool::page_bytes());
    CHECK(tool::resident_bytes(elements.bytes()) <= (i + kWindow - begin) * sizeof(Element) + 2 * tool::page_bytes());
  }
  CHECK(merger.is_done());
}

}  // namespace pif::sort
