// Which handler the LFS has for each operation, bound by its type: whoever has handlers binds them in its constructor.
#pragma once

#include <optional>
#include <type_traits>

#include "context/request.h"
#include "pif/wire/bindings.h"

namespace pif::lfs {

// Whether an operation waits until the LFS serves.
enum class When : std::uint8_t { kServing, kAlways };

struct Handler {
  void* part = nullptr;  // what has the handler
  // On a fiber: it may wait. Nothing: there is no answer.
  std::optional<Result<net::Packet>> (*run)(void* part, const Request& request) = nullptr;
  wire::NeededRights (*needed)(const proto::Envelope& request) = nullptr;
  When when = When::kServing;
};

class Operations {
 public:
  // kMethod: of `part`, `Result<net::Packet> (const Request&, const R&)`, whose result is the answer, or `Status
  // (...)`, of which it is Done, or `std::optional<Status> (...)`, the same, where nothing means no answer. It runs on
  // a fiber, and may wait. `part` outlives this.
  template <auto kMethod, typename Part>
  void bind(Part& part, When when = When::kServing) {
    using R = RequestOf<kMethod>;
    bindings_.bind<R>({&part, &run<kMethod, Part>, &needed<R>, when});
  }
  // Null for what is not an LFS's.
  const Handler* find(int op_case) const { return bindings_.find(op_case); }
  void start() const { bindings_.start(); }

 private:
  template <typename Part, typename Result, typename R>
  static R request_of(Result (Part::*)(const Request&, const R&));
  template <auto kMethod>
  using RequestOf = decltype(request_of(kMethod));

  template <typename R>
  static wire::NeededRights needed(const proto::Envelope& request) {
    return wire::needed_rights(wire::OperationOf<R>::request(request));
  }
  template <auto kMethod, typename Part>
  static std::optional<Result<net::Packet>> run(void* part, const Request& request) {
    const auto& asked = wire::OperationOf<RequestOf<kMethod>>::request(request.envelope());
    Part& self = *static_cast<Part*>(part);
    auto result = (self.*kMethod)(request, asked);
    if constexpr (std::is_same_v<decltype(result), Result<net::Packet>>) {
      return result;
    } else {
      const std::optional<Status> status = std::move(result);
      if (!status) return std::nullopt;
      PIF_TRY(*status);
      net::Packet done = Replies::reply(request);
      done.envelope.mutable_done();
      return done;
    }
  }

  wire::Bindings<wire::Daemon::kLfs, Handler> bindings_;
};

}  // namespace pif::lfs
