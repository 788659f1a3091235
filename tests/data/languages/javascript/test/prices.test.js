import { test } from "node:test";
import { total } from "../prices.js";

test("adds", () => {
  if (total([1, 2]) !== 3) throw new Error("wrong");
});
