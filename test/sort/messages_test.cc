// What the controller and the workers of a sort take from one another, right and wrong.
#include "../../tools/pif_sort/messages.h"

#include <limits>

#include <catch2/catch.hpp>

#include "../../tools/pif_sort/keys/key_list.h"
#include "../../tools/pif_sort/keys/lengths.h"
#include "../../tools/pif_sort/output/tails.h"

namespace pif::sort {
namespace {

const FileLength kInput = {100, 1000};

template <typename T>
std::string error_of(const Result<T>& result) {
  if (result) return {};
  CHECK(result.error().code == Code::kCorrupt);
  return result.error().text;
}
bool says(const std::string& error, std::string_view text) { return error.find(text) != std::string::npos; }

Outcome an_outcome() {
  Outcome outcome;
  outcome.put_out = {7, 70};
  outcome.counts = {3, 2, std::chrono::nanoseconds(11)};
  outcome.sort_seconds = 1.5;
  outcome.merge_seconds = 0.25;
  return outcome;
}
template <typename F>
std::string error_of_outcome(F change) {
  Outcome outcome = an_outcome();
  change(outcome);
  return error_of(unpack_outcome(pack(outcome), 3, kInput));
}

}  // namespace

TEST_CASE("what is to be sorted comes to the workers as it was said") {
  SortOptions wanted;
  wanted.keys.keys = {"0:3", "\xff\x01"};
  wanted.keys.separator = '\0';
  wanted.keys.reverse = wanted.unique = wanted.check = true;
  wanted.memory = UINT64_MAX;
  wanted.top = UINT64_MAX - 1;
  wanted.header_records = 3;
  wanted.merge_inputs = true;
  wanted.keys.csv = true;
  wanted.header = {"a\n", "\n"};
  wanted.merge = MergeKind::kPipelined;
  wanted.token_batch = 0;
  const auto back = unpack_options(pack(wanted));
  REQUIRE(back);
  CHECK(back->keys.keys == wanted.keys.keys);
  CHECK(back->keys.separator == wanted.keys.separator);
  CHECK(back->keys.reverse);
  CHECK(!back->keys.numeric);
  CHECK(back->unique);
  CHECK(back->check);
  CHECK(back->memory == wanted.memory);
  CHECK(back->top == wanted.top);
  CHECK(back->header_records == 3);
  CHECK(back->merge_inputs);
  CHECK(back->keys.csv);
  CHECK(back->header == wanted.header);
  CHECK(back->merge == wanted.merge);
  CHECK(back->token_batch == 0);
  CHECK(!unpack_options(pack(SortOptions{}))->keys.separator);
}

TEST_CASE("each way to compare texts comes to the workers") {
  constexpr bool KeyLetters::*kAll[] = {
      &KeyLetters::numeric, &KeyLetters::general_numeric, &KeyLetters::human_numeric, &KeyLetters::month,
      &KeyLetters::version, &KeyLetters::only_dictionary, &KeyLetters::only_printing, &KeyLetters::fold,
      &KeyLetters::reverse, &KeyLetters::skip_blanks};
  for (const auto set : kAll) {
    SortOptions wanted;
    wanted.keys.*set = true;
    const auto back = unpack_options(pack(wanted));
    REQUIRE(back);
    for (const auto other : kAll) CHECK(back->keys.*other == (other == set));
  }
}

TEST_CASE("the bytes of a job of before there were more ways than by number mean the same") {
  const auto back = unpack_options(std::string_view("\x0a\x01\x32\x18\x01\x20\x01\x28\x01", 9));
  REQUIRE(back);
  CHECK(back->keys.keys == std::vector<std::string>{"2"});
  CHECK((back->keys.numeric && back->keys.reverse && back->keys.skip_blanks));
  CHECK((!back->keys.fold && !back->keys.version));
}

TEST_CASE("a job that is not one of a sort is refused") {
  CHECK(says(error_of(unpack_options("{\"keys\":[]}")), "the controller sent nonsense"));
  message::JobSpec spec;
  spec.set_merge(static_cast<message::MergeKind>(3));
  CHECK(says(error_of(unpack_options(spec.SerializeAsString())), "merge 3"));
  spec.set_merge(message::SPLIT);
  spec.set_separator("ab");
  CHECK(says(error_of(unpack_options(spec.SerializeAsString())), "a separator of 2 characters"));
}

TEST_CASE("what a worker comes to is taken as it said it, if it can be true") {
  const auto back = unpack_outcome(pack(an_outcome()), 3, kInput);
  REQUIRE(back);
  CHECK(back->put_out == an_outcome().put_out);
  CHECK(back->counts.hops == 3);
  CHECK(back->counts.acted == std::chrono::nanoseconds(11));
  CHECK(back->merge_seconds == 0.25);

  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(says(error_of(unpack_outcome("\xff", 3, kInput)), "worker 3 sent nonsense"));
  CHECK(says(error_of_outcome([](Outcome& o) { o.put_out.records = 101; }),
             "worker 3 sent nonsense: it put out 101 records"));
  CHECK(says(error_of_outcome([](Outcome& o) { o.put_out.bytes = UINT64_MAX; }), "worker 3"));
  CHECK(says(error_of_outcome([](Outcome& o) { o.sort_seconds = -1; }), "worker 3"));
  CHECK(says(error_of_outcome([&](Outcome& o) { o.merge_seconds = nan; }), "worker 3"));
  CHECK(says(error_of_outcome([](Outcome& o) { o.merge_seconds = 1e300; }), "worker 3"));
  CHECK(says(error_of_outcome([](Outcome& o) { o.counts.acted = std::chrono::nanoseconds(-1); }), "worker 3"));
}

TEST_CASE("the ends of components come in their number") {
  const std::vector<component::Tail> tails = {{1, 2, 3, 4}, {}, {UINT64_MAX, 0, 0, 1}};
  CHECK(unpack_tails(pack_tails(tails), 2, 3).value() == tails);
  CHECK(says(error_of(unpack_tails(pack_tails(tails), 2, 2)),
             "worker 2 sent nonsense: the ends of 3 components, where there are 2"));
  CHECK(says(error_of(unpack_tails("\xff", 2, 3)), "worker 2 sent nonsense"));
}

TEST_CASE("lengths have as many classes as they have") {
  Lengths lengths;
  lengths.add(100, 7);
  message::RunSizes sizes;
  lengths.pack(sizes);
  const auto back = Lengths::unpack(sizes);
  REQUIRE(back);
  CHECK(back->fit(350, 0) == lengths.fit(350, 0));
  sizes.mutable_lengths()->RemoveLast();
  CHECK(!Lengths::unpack(sizes));
}

TEST_CASE("a list of keys that is cut off anywhere is refused") {
  KeyList keys;
  for (const std::string_view key : {"one", "", "three"}) keys.add(key);
  const net::Buffer body = keys.pack(1);
  const auto whole = KeyList::unpack(std::as_const(body).span());
  REQUIRE(whole);
  CHECK(whole->size() == 2);
  CHECK((*whole)[1] == "three");
  for (std::size_t size = 0; size < body.size(); ++size) CHECK(!KeyList::unpack(body.span().first(size)));
}

}  // namespace pif::sort
