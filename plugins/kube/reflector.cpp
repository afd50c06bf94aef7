// SPDX-License-Identifier: Apache-2.0
#include "kube/reflector.hpp"

#include <algorithm>

#include "common/wait_until.hpp"
#include "kube/json_access.hpp"
#include "kube/object_client.hpp"

namespace driftd::kube {
namespace {

constexpr std::chrono::milliseconds kFirstPatience{1000}, kMaxPatience{30'000};
constexpr int kMaxLists = 3;  // one after the other, because objects went while a list was answered

sdk::Failure malformed(const Resource& resource) {
  return {DRIFTD_CORRUPT, "an object of " + resource.plural + " is not of the form of its type", resource.kind};
}

}  // namespace

Reflector::Reflector(Api& api, std::vector<Followed> followed, ReflectorHandler& handler)
    : api_(api),
      followed_(std::move(followed)),
      handler_(handler) {
  for (const auto& each : followed_) {
    const bool all = each.namespaces.empty() || !each.resource.namespaced;
    for (const auto& space : all ? std::vector<std::string>{{}} : each.namespaces) sources_.push_back({&each, space});
  }
  unsynced_ = sources_.size();
}

void Reflector::run(sdk::Call& call) {
  while (!call.cancelled()) {
    try {
      run_watches(call);
    } catch (const sdk::Failure& failure) {
      if (failure.code == DRIFTD_CANCELLED && call.cancelled()) return;
      if (!api_.cluster_guard().has_met_other()) throw;
      wait_for_cluster(call, failure);
    }
  }
}

void Reflector::wait_for_cluster(sdk::Call& call, const sdk::Failure& failure) {
  for (auto& source : sources_) report(source, failure);
  api_.cluster_guard().forget_other();  // the next connections are all new
  patience_ = std::clamp(patience_ * 2, kFirstPatience, kMaxPatience);
  common::wait_until(call, std::chrono::steady_clock::now() + patience_);
}

void Reflector::run_watches(sdk::Call& call) {
  http::Client client(api_.options(call));
  Lister lister(api_, client, streams_lists_);
  client_ = &client;
  Watches watches(call, api_, lister, *this);
  source_of_.clear();
  for (auto& source : sources_) {
    Stream& stream = watches.add(source.followed->resource, source.space);
    stream.version = source.version;
    stream.failed = !source.reported.empty();
    source_of_[&stream] = &source;
  }
  try {
    while (!call.cancelled() && !watches.has_old_certificate())
      watches.run_once(call, Stream::Clock::time_point::max());
  } catch (...) {
    keep_versions();
    throw;
  }
  keep_versions();
}

void Reflector::keep_versions() {
  for (const auto& [stream, source] : source_of_) source->version = stream->version;
}

std::string Reflector::list(sdk::Call& call, Source& source, std::map<Place, std::string>& places) {
  for (int i = 0; i < kMaxLists; ++i) {
    Lister lister(api_, *client_, streams_lists_);
    places.clear();
    const auto on_object = [&](const Lister::Listed& listed) {
      places[place_of(listed.object)] = text(listed.object, {"metadata", "uid"});
      observe(source, listed.object, listed.cut);
    };
    std::string version = lister.list(call, source.followed->resource, source.space, on_object);
    if (!lister.may_miss_deletions()) return version;
  }
  throw sdk::Failure(DRIFTD_UNAVAILABLE,
                     "list " + source.followed->resource.plural + ": objects were deleted while each of " +
                         std::to_string(kMaxLists) + " lists was answered; it is listed again",
                     source.followed->resource.kind);
}

void Reflector::start(sdk::Call& call, Stream& stream) {
  Source& source = *source_of_.at(&stream);
  const auto at = Stream::Clock::now();
  std::map<Place, std::string> places;
  std::string version = list(call, source, places);
  for (const auto& [place, uid] : std::exchange(source.known, places)) {
    if (!places.contains(place)) tell_gone(source, place, uid);
  }
  stream.start_at(std::move(version), at);
  if (!std::exchange(source.synced, true)) --unsynced_;
  const auto other = [&](const Source& each) { return each.followed == source.followed && !each.synced; };
  if (std::none_of(sources_.begin(), sources_.end(), other)) handler_.on_synced(source.followed->resource);
}

void Reflector::observe(Source& source, const json& object, const std::string& cut) {
  const Resource& resource = source.followed->resource;
  const Place place = place_of(object);
  const std::string uid = text(object, {"metadata", "uid"});
  std::string& known = source.known[place];
  if (!known.empty() && known != uid) tell_gone(source, place, known);
  known = uid;
  try {
    handler_.on_object(resource, {object, false, cut});
  } catch (const json::exception&) {  // the text of the exception could quote a value
    handler_.on_failure(resource, malformed(resource));
  }
}

void Reflector::tell_gone(const Source& source, const Place& place, const std::string& uid) {
  const Resource& resource = source.followed->resource;
  json metadata = {{"name", place.name}, {"uid", uid}};
  if (!place.space.empty()) metadata["namespace"] = place.space;
  const json object = {{"apiVersion", resource.api_version()}, {"kind", resource.object}, {"metadata", metadata}};
  handler_.on_object(resource, {object, true, {}});
}

void Reflector::on_object(sdk::Call&, Stream& stream, const Lister::Listed& listed, Change change) {
  Source& source = *source_of_.at(&stream);
  if (change != Change::kDeleted) return observe(source, listed.object, listed.cut);
  source.known.erase(place_of(listed.object));
  handler_.on_object(source.followed->resource, {listed.object, true, listed.cut});
}

void Reflector::on_malformed(sdk::Call&, Stream& stream) {
  handler_.on_failure(*stream.resource, malformed(*stream.resource));
}

void Reflector::on_expired(sdk::Call&, Stream&) {}  // it has no version any more, and start() lists

void Reflector::on_failure(sdk::Call&, Stream& stream, const sdk::Failure& failure) {
  report(*source_of_.at(&stream), failure);
}

void Reflector::report(Source& source, const sdk::Failure& failure) {
  const char* other = api_.cluster_guard().has_met_other() ? " another cluster" : "";
  const std::string reason = std::to_string(failure.code) + " " + failure.right + other;
  if (std::exchange(source.reported, reason) != reason) handler_.on_failure(source.followed->resource, failure);
}

void Reflector::on_recovered(sdk::Call&, Stream& stream) {
  patience_ = {};
  source_of_.at(&stream)->reported.clear();
  handler_.on_recovered(*stream.resource);
}

}  // namespace driftd::kube
