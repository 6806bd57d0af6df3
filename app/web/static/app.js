// Comfort only: every page is complete without this file.
"use strict";

for (const button of document.querySelectorAll("[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  const label = [...button.childNodes];
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      button.textContent = "Copied";
    } catch {
      // no clipboard without https: select it, so that Ctrl C does the rest
      if (source.select) source.select();
      else getSelection().selectAllChildren(source);
      button.textContent = "Selected";
    }
    setTimeout(() => button.replaceChildren(...label), 1500);
  });
}

const box = document.querySelector("textarea[name=log]");
if (box) {
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) box.form.requestSubmit();
  });
  const mark = (on) => box.classList.toggle("drop", on);
  box.addEventListener("dragover", (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    mark(true);
  });
  box.addEventListener("dragleave", () => mark(false));
  box.addEventListener("drop", async (event) => {
    mark(false);
    const file = event.dataTransfer.files[0];
    if (!file) return;
    event.preventDefault();
    box.value = await file.text();
  });
}

// Lists: search as you type, and keys. The same address is asked for as the form would.
const isTyping = (target) => /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable;
const list = () => [...document.querySelectorAll(".rows .t")];

for (const form of document.querySelectorAll("form[data-live]")) {
  let timer, asking;
  const show = async () => {
    const fields = [...new FormData(form)].filter(([, value]) => value.trim());
    const address = `${form.getAttribute("action")}?${new URLSearchParams(fields)}`;
    asking?.abort();
    asking = new AbortController();
    try {
      const answer = await fetch(address, { signal: asking.signal });
      if (!answer.ok || answer.redirected) return; // a number names an issue: its page opens when it is sent
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = page.getElementById(form.dataset.live);
      if (!found) return;
      document.getElementById(form.dataset.live).replaceWith(found);
      document.title = page.title;
      history.replaceState(null, "", address);
    } catch {
      // another word was typed meanwhile, or the server is gone: the button still asks
    }
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, 250);
  });
}

const keys = document.getElementById("keys");
if (keys) {
  for (const hint of document.querySelectorAll("[data-keys]")) hint.hidden = false;
  document.addEventListener("keydown", (event) => {
    if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
    const links = list();
    const at = links.indexOf(document.activeElement);
    if (event.key === "/") (document.querySelector("main input[type=search]") ?? document.getElementById("find"))?.focus();
    else if (event.key === "?") keys.showModal();
    else if (event.key === "j") links[Math.min(at + 1, links.length - 1)]?.focus();
    else if (event.key === "k") links[Math.max(at - 1, 0)]?.focus();
    else if (document.querySelector(`[data-key="${CSS.escape(event.key)}"]`))
      document.querySelector(`[data-key="${CSS.escape(event.key)}"]`).click();
    else return;
    event.preventDefault();
  });
}
