// The format of server-sent events, read from a stream of bytes. Pure.
//
//   const parser = new EventParser();
//   parser.push(text) -> [{ event, data }]    whole events only; the rest waits for more text

export class EventParser {
  #rest = "";
  id = ""; // of the last event, also of one that holds nothing else

  push(text) {
    const blocks = (this.#rest + text).replaceAll("\r\n", "\n").split("\n\n");
    this.#rest = blocks.pop();
    return blocks.map((block) => this.#event(block)).filter((each) => each !== null);
  }

  #event(block) {
    const found = { event: "message", data: [] };
    for (const line of block.split("\n")) {
      const [, field, value] = /^([^:]*)(?::\s?(.*))?$/s.exec(line) ?? [];
      if (field === "id") this.id = value ?? "";
      else if (field === "event") found.event = value ?? "";
      else if (field === "data") found.data.push(value ?? "");
    }
    if (!found.data.length && found.event === "message") return null; // a comment, a sign of life
    return { event: found.event, data: found.data.join("\n") };
  }
}
