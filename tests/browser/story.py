"""The owner's page in headless Chromium: one story by mouse, again by keyboard alone, and what axe-core says of each page.

usage: story.py ADDRESS OWNER_TOKEN AXE_JS SCREENSHOTS

The host's model asks a question, asks for approval, and answers, once for each of the two stories. Texts of tools and
the model hold markup: it has to stay text. Any error on the page, or in its console, ends the story.
"""

import io
import sys
import zipfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

ADDRESS, TOKEN, AXE, SHOTS = sys.argv[1:]
PLACES = ["/", "/start", "/skills", "/credentials", "/network", "/signals", "/health", "/settings"]


def skill(name):
    """The bytes of a skill's archive."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("SKILL.md", f"---\nname: {name}\ndescription: Says <b>{name}</b>.\n---\n\nSay {name}.\n")
    return archive.getvalue()


def check(page, name):
    """No violation of axe-core's rules, at two widths, light and dark."""
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            if not page.evaluate("() => 'axe' in window"):
                page.evaluate(Path(AXE).read_text())
            found = page.evaluate("async () => (await axe.run()).violations.map(v => v.id + ': ' + v.nodes.map(n => n.html + ' ' + n.failureSummary).join('\\n'))")
            assert not found, f"{name} at {width}, {scheme}: " + "\n".join(found)
            wide = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{name} at {width} scrolls sideways by {wide}"
            page.screenshot(path=f"{SHOTS}/{name}-{width}-{scheme}.png", full_page=True)
    page.set_viewport_size({"width": 1280, "height": 900})


def no_markup(page):
    """What models and tools wrote is text."""
    assert page.title() != "owned"
    assert page.locator("main script, main img").count() == 0


def by_mouse(page):
    page.goto(ADDRESS)
    page.fill("#token", TOKEN)
    page.click("text=Sign in >> nth=-1")
    expect(page.locator("h1")).to_have_text("Now")
    check(page, "empty")
    page.click("nav >> text=Start")
    page.fill("#task", "paint the <room>")
    page.check("input[value=filesystem]")
    page.check("input[value=code]")
    page.click("text=Show what it could touch")
    expect(page.locator(".explained")).to_contain_text("every request would be refused")
    check(page, "explained")
    page.click(".actions .primary")
    expect(page.locator("h1")).to_contain_text("paint the <room>")
    page.wait_for_selector("#asks .ask")
    no_markup(page)
    check(page, "asks")
    # The inbox has it too, and takes the answer.
    page.click("nav >> text=Now")
    expect(page.locator("#inbox .ask")).to_have_count(1)
    check(page, "inbox")
    page.click("#inbox button[value=blue]")
    expect(page.locator("#inbox")).to_contain_text("rooms.example.com")
    check(page, "approval")
    # A change of the page leaves what was written.
    page.fill("#inbox input[name=reason]", "for now")
    page.evaluate("document.activeElement.blur(); document.querySelector('#inbox .ask').append('stale'); refresh()")
    expect(page.locator("#inbox")).not_to_contain_text("stale")
    expect(page.locator("#inbox input[name=reason]")).to_have_value("for now")
    page.click("#inbox a[href^='/runs/']")
    expect(page.locator("#asks")).to_contain_text("book the room")
    page.click("text=Approve")
    # Live: nothing is loaded again by hand.
    expect(page.locator("#state .badge")).to_have_text("completed", timeout=30_000)
    expect(page.locator("#state")).to_contain_text("<script>")
    for row in page.locator("#timeline details").all():
        row.locator("summary").click()
    no_markup(page)
    check(page, "completed")
    page.click("#files a >> nth=0")
    expect(page.locator("pre.preview")).to_contain_text("<script>")
    no_markup(page)
    check(page, "preview")
    page.go_back()
    with page.expect_download() as download:
        page.click("#files a[download]")
    assert b"<script>" in Path(download.value.path()).read_bytes()
    with page.expect_download() as download:
        page.click("text=Download the receipt")
    assert b'"signature"' in Path(download.value.path()).read_bytes()
    page.click("nav >> text=Skills")
    page.set_input_files("#file", {"name": "greet.skill", "mimeType": "application/zip", "buffer": skill("greet")})
    page.click("text=Add >> nth=-1")
    approve(page, "greet", lambda: page.click("text=Approve exactly this"))
    drop(page)
    for place in PLACES:
        page.goto(ADDRESS + place)
        check(page, place.strip("/") or "now")


def approve(page, name, press):
    expect(page.locator("h1")).to_contain_text(name)
    no_markup(page)
    check(page, f"review-{name}")
    press()
    expect(page.locator("h1 .badge")).to_have_text("approved")


def drop(page):
    page.goto(ADDRESS + "/skills")
    file = page.evaluate_handle(
        """bytes => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(bytes)], "wave.skill"));
            return transfer;
        }""",
        list(skill("wave")),
    )
    page.dispatch_event("[data-drop]", "drop", {"dataTransfer": file})
    approve(page, "wave", lambda: page.click("text=Approve exactly this"))


def tab_to(page, selector):
    """Moves the focus forward until it is there."""
    for _ in range(200):
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not reach {selector}")


def press(page, selector, key="Enter"):
    tab_to(page, selector)
    page.keyboard.press(key)


def by_keyboard(page):
    page.goto(ADDRESS)
    page.keyboard.type(TOKEN)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Now")
    press(page, "nav a[href='/start']")
    expect(page.locator("h1")).to_have_text("Start something")
    tab_to(page, "#task")
    page.keyboard.type("paint it again")
    press(page, "input[value=filesystem]", "Space")
    press(page, "input[value=code]", "Space")
    press(page, "button[value=start]")
    page.wait_for_selector("#asks .ask")
    tab_to(page, "#asks input[name=answer]")
    page.keyboard.type("green")
    page.keyboard.press("Enter")
    expect(page.locator("#asks")).to_contain_text("book the room", timeout=30_000)
    press(page, "#asks button[value=yes]")
    expect(page.locator("#state .badge")).to_have_text("completed", timeout=30_000)
    press(page, "#timeline summary")
    expect(page.locator("#timeline details[open]")).to_have_count(1)
    press(page, "nav a[href='/skills']")
    expect(page.locator("h1")).to_have_text("Skills")
    press(page, "#file", "Tab")
    page.set_input_files("#file", {"name": "nod.skill", "mimeType": "application/zip", "buffer": skill("nod")})
    press(page, ".drop button")
    approve(page, "nod", lambda: press(page, "form[action='/skills/approval'] button"))
    press(page, "form[action='/sign-out'] button")
    expect(page.locator("h1")).to_have_text("Sign in")


def without_scripts(page):
    """Everything is there without a script."""
    page.goto(ADDRESS)
    page.fill("#token", TOKEN)
    page.click("text=Sign in >> nth=-1")
    page.click("#runs a >> nth=0")
    page.click("#timeline summary >> nth=0")
    expect(page.locator("#timeline details[open]")).to_have_count(1)


def main():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for story, scripts in ((by_mouse, True), (by_keyboard, True), (without_scripts, False)):
            # axe-core is added to the page, which its policy would not let in.
            context = browser.new_context(java_script_enabled=scripts, bypass_csp=story is by_mouse)
            page = context.new_page()
            page.set_default_timeout(60_000)
            errors = []
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
            try:
                story(page)
            except BaseException:
                page.screenshot(path=f"{SHOTS}/failed.png", full_page=True)
                raise
            assert not errors, errors
            context.close()
            print(f"{story.__name__}: done")
        browser.close()


main()
