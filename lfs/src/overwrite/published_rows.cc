#include "overwrite/published_rows.h"

#include <utility>

#include <fmt/format.h>

#include "parity/length_request.h"
#include "pif/base/assert.h"

namespace pif::lfs {
namespace {

constexpr Duration kPatience = std::chrono::seconds(5);

}  // namespace

std::uint64_t PublishedRows::known(const Component& component) {
  return component.layout.rows(component.state.shape().index(), component.state.published().records());
}

Result<std::uint64_t> PublishedRows::ask(const ComponentPtr& component) {
  auto& newest = newest_[component];
  if (newest && !newest->is_sent) {  // somebody else sends it
    const auto shared = newest;
    while (!shared->rows) ended_.wait();
    return *shared->rows;
  }
  const auto before = std::exchange(newest, std::make_shared<Question>());
  const auto own = newest;
  while (before && !before->rows) ended_.wait();
  PIF_ASSERT(!own->is_sent && !own->rows, component->file.value);
  own->is_sent = true;
  own->rows = send(*component);
  if (const auto at = newest_.find(component); at != newest_.end() && at->second == own) newest_.erase(at);
  ended_.notify();
  PIF_ASSERT(own->rows.has_value());
  return *own->rows;
}

Result<std::uint64_t> PublishedRows::send(const Component& component) {
  PIF_ASSERT(!is_known_here(component) && component.shape.form == 0, component.file.value);
  PIF_TRY_VALUE(const auto grant, peers_.grant(component.state.shape(), component.state.epoch()));
  FileLength length;
  const Status status = peers_.run(*grant, [&](access::Requests& requests) {
    auto request =
        length_request({0, component.file.value}, component.shape.format, [&length](const LengthAnswer& answer) {
          length = answer.length;
          return Status();
        });
    request.timeout = kPatience;
    requests.add(std::move(request));
  });
  if (status) return component.layout.rows(component.state.shape().index(), length.records);
  const Error& why = status.error();
  return fail(access::is_lost(why.code) ? Code::kRetry : why.code,
              fmt::format("{} asks {} whether rows of file {} are published, before it changes them: {}",
                          context_.config.name, why.node, name_of(component.file), why.text));
}

}  // namespace pif::lfs
